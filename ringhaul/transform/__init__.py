"""Functions of a user's between reading and writing: batches of records in, batches of rows out.

This is what a module with such functions imports; docs/transforms.md says what they may do.
"""

from ringhaul.transform.each_row import each_row

__all__ = ["RECORD", "each_row"]

#: The column of a batch that holds the number, within the batch, of the record of each row.
RECORD = "_record"
