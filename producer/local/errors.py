"""Errors of the local stack, with messages for users."""

from ringhaul.errors import EXIT_FATAL, Terminal


class LocalStackError(Terminal):
    """The local stack, or a part of it, cannot be started or stopped on this machine."""

    exit_code = EXIT_FATAL


class PortTaken(LocalStackError):
    """Another process took the port before our server could bind it; try another port."""


class ExtraMissing(LocalStackError):
    """ringhaul was installed without what runs the local stack."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is not installed: the local stack needs the extra local: "
            'pip install "ringhaul[local]"'
        )
