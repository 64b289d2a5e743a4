"""Turn the bytes of source files into typed rows, with every record accounted for."""
