"""Plans: from a draft to a job with its sources, columns and units. Connects to the cluster, but
changes nothing."""
