"""Load: what only writing rows needs. The rows come from `records`, the connections are those of
`dataplane`."""
