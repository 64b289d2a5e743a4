"""Code that runs in a worker's parent process: heartbeat, sweep, preflight, shutdown."""
