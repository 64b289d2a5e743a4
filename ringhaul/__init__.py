"""The engine of ringhaul: formats, CQL columns, write strategies, ledger. Knows no Celery, no settings."""

__version__ = "0.1.0"
