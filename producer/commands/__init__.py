"""Commands: click only, one module for each command or family of commands."""
