"""The engine of ringhaul: formats, CQL columns, writing, the ledger. No Celery, no settings."""

__version__ = "0.1.0"
