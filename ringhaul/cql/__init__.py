"""CQL values by column: text columns in, the wire bytes of every row out.

`text` turns a column of text into `cells` (one length and some bytes per row), `cells` joins the
cells of several columns into rows and routing keys, and `tokens` hashes routing keys. Nothing here
opens a file or a socket.
"""
