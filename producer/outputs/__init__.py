"""Files and streams that the command itself writes."""
