"""The read side: token ranges to rows, and rows to files, counts and tables."""
