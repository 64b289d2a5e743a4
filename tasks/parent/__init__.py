"""What runs in a worker's own process, beside its pool: heartbeat, sweep, preflight, shutdown."""
