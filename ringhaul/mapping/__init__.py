"""From the fields of a file to the columns of a table: what planning settles before a load."""
