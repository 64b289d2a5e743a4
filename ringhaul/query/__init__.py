"""WHERE and SELECT over a table's rows: the part that Cassandra evaluates, and the rest in Arrow.

Pure. Batches have the Arrow forms of `ringhaul.cql.types`; names are spelt as in CQL.
"""
