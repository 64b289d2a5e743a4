"""The engine of ringhaul: formats, CQL columns, writing, the ledger. No Celery, no settings."""

__version__ = "1.0.0rc1"
