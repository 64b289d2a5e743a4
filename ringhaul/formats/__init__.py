"""File formats: CSV, JSON Lines and Parquet to columns, and columns to files. Pure."""
