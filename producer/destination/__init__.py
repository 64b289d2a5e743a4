"""Plan each destination of a load: whether table, cluster and nodes allow it, what it needs before
the workers start, and what is published at the end."""
