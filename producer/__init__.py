"""The command line: sources to units, submit, watch, report."""
