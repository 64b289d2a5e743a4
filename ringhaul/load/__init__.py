"""Load: what only writing rows needs. Rows come from `records`, connections from `dataplane`."""
