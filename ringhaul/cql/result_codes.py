"""Numbers in a response with rows, which the protocol calls a Rows result.

Source: "CQL BINARY PROTOCOL" v4 and v5 of Apache Cassandra, section 4.2.5.2. Kernels repeat some of
them in their own files (see `compiled`).
"""

KIND_ROWS = 2
#: Flags of the metadata.
GLOBAL_TABLE, HAS_MORE_PAGES, NO_METADATA, METADATA_CHANGED = 0x1, 0x2, 0x4, 0x8
#: Ids of types that carry more than their id.
CUSTOM, LIST, MAP, SET, UDT, TUPLE = 0x00, 0x20, 0x21, 0x22, 0x30, 0x31
