"""Format values as text for CSV and JSON, such that a load reads them back bit for bit.

One module per family of types, each converting whole Arrow columns to whole text columns.
"""

from ringhaul.cql.spell.column import json_of, text_of
from ringhaul.cql.spell.quoting import json_strings

__all__ = ["json_of", "json_strings", "text_of"]
