"""From the bytes of source files to typed rows, every record accounted for."""
