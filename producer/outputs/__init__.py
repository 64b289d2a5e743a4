"""Files and streams that a command itself writes."""
