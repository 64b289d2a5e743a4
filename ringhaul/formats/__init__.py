"""Text formats: from the bytes of a file to columns of text, one record at a time accounted for."""
