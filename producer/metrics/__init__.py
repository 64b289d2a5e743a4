"""Metrics for Prometheus, computed from the ledger."""
