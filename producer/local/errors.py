"""What can go wrong with the local stack, told to a user."""

from ringhaul.errors import EXIT_FATAL, Terminal


class LocalStackError(Terminal):
    """The local stack, or a part of it, cannot be started or stopped on this machine."""

    exit_code = EXIT_FATAL


class PortTaken(LocalStackError):
    """Another process took a port between its choice and our server's start: try another one."""
