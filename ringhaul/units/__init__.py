"""A unit of records: its blocks, read from their source, and an account of each record."""
