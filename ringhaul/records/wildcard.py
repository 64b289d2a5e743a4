"""The wildcard for columns: in a mapping, and in a job's times for all of a row. Pure."""

#: Every column of a row.
EVERY = "*"
