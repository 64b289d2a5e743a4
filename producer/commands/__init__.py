"""One module per command of `ringhaul`."""
