"""What `ringhaul tune` decides and shows: which setups to try, what limits, the file. Pure."""
