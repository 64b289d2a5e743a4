"""The kinds of job that read sources as a load does."""

#: What is done with the rows: they are written, or compared with those of the table.
LOAD_KINDS = ("load", "verify")
