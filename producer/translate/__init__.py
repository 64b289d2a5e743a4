"""`ringhaul translate`: commands of other tools, as commands of ringhaul."""
