"""The message with which settings are refused."""

from pathlib import Path
from typing import Any

import pytest

from config.settings import ConfigError, load_settings


def refused(flags: dict[str, Any] | None = None, file: Path | None = None) -> str:
    with pytest.raises(ConfigError) as error:
        load_settings(flags, file)
    assert error.value.exit_code == 2
    return str(error.value)
