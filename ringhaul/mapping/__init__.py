"""The way from fields of a file to columns of a table: what planning settles before a load."""
