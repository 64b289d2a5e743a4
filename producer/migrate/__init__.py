"""`ringhaul translate`: commands of other tools, translated and checked."""
