"""The kinds of job that read sources as a load does."""

#: The rows are written, or compared with those of the table.
LOAD_KINDS = ("load", "verify")
