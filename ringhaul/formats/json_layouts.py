"""How JSON objects lie in a file."""

#: One object on each line; objects however they are broken into lines, also in an array; the same
#: with comments.
JSON_LAYOUTS = ("lines", "documents", "commented")
