"""Load: ranges of CSV files into a table, one unit at a time, each record accounted for."""
