"""Values as text: what an unload writes into CSV and JSON, and a load reads back bit for bit.

One module per family of types, each from whole Arrow columns to whole text columns.
"""

from ringhaul.cql.spell.column import json_of, text_of
from ringhaul.cql.spell.quoting import json_strings

__all__ = ["json_of", "json_strings", "text_of", "warm_up"]


def warm_up() -> None:
    """Load the kernels of this process, or compile them where nobody has done so before."""
    from ringhaul.cql.spell import digits, kernels

    assert digits and kernels
