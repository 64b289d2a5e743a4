"""The configuration error: names the setting, the origin of its value, and what to do."""


class ConfigError(Exception):
    """A setting has an unusable value. The message is for the user and holds no secret."""

    #: Exit code of the command: usage, configuration or input is wrong.
    exit_code = 2

    def __init__(self, *lines: str) -> None:
        """`lines`: one per problem. A line end inside one comes from a text that it quotes."""
        super().__init__("\n".join(lines))
        self.lines = lines
