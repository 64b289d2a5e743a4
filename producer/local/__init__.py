"""Run a real Cassandra and a real Valkey on this machine, from Python packages only."""
