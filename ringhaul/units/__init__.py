"""A unit of records: its blocks read from their source, and what became of each record."""
