"""`ringhaul tune`: which setups to try, trials of a load, what limits it, the settings file."""
