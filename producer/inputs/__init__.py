"""Where a job's records come from: URL lists, manifests of unloads, standard input."""
