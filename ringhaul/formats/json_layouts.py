"""How JSON objects lie in a file."""

#: One object on each line; objects on any number of lines, also in an array; such objects with
#: comments.
JSON_LAYOUTS = ("lines", "documents", "commented")
