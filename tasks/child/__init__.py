"""Code that runs in the pool processes of a worker: the units."""
