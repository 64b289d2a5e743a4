"""What a command was asked to do, checked before any service is reached."""
