"""Result pages of the native protocol, as Arrow columns.

One compiled pass finds where each value of a page begins; then each column is gathered by itself.
No row and no value becomes a Python object. Pure: bytes in, Arrow out.
"""

from ringhaul.cql.decode.head import paging_state, result_body
from ringhaul.cql.decode.hostile import HostilePage
from ringhaul.cql.decode.page import PageDecoder, warm_up

__all__ = ["HostilePage", "PageDecoder", "paging_state", "result_body", "warm_up"]
