"""The one error of configuration: which setting, where its value came from, what to do."""


class ConfigError(Exception):
    """A setting cannot be used as given. The message is meant for the user, and holds no secret."""

    #: The command ends with this code: usage, configuration or input is wrong.
    exit_code = 2

    def __init__(self, *lines: str) -> None:
        """Each problem is a line; line ends within one are of what it quotes."""
        super().__init__("\n".join(lines))
        self.lines = lines
