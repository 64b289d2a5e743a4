"""Source files: find them, open them by ranges, notice that they changed."""
