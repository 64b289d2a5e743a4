"""Decode result pages of the native protocol to Arrow columns.

One compiled pass finds where each value of a page begins; then each column is gathered separately.
Rows and values never become Python objects. Pure: bytes in, Arrow out.
"""

from ringhaul.cql.decode.head import paging_state, result_body
from ringhaul.cql.decode.hostile_page import HostilePage
from ringhaul.cql.decode.page import PageDecoder

__all__ = ["HostilePage", "PageDecoder", "paging_state", "result_body"]
