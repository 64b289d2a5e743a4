"""Where the rows of a load go: each destination is a value in the job's spec, and answers what
differs between destinations."""
