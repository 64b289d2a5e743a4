"""User-defined functions between reading and writing: batches of records in, batches of rows out.

Modules with such functions import this package; docs/how-to/transforms.md says what they may do.
"""

from ringhaul.transform.each_row import each_row

__all__ = ["RECORD", "each_row"]

#: The column that holds, for each row, the number of its record within the batch.
RECORD = "_record"
