"""Every option, as a field of the frozen records that commands get."""
