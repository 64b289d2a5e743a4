"""From a request to a job: sources, columns, units. Connects to the cluster, changes nothing."""
