"""What runs in a pool process of a worker: the units."""
