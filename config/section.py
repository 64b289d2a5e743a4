"""What all sections of the settings have in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen group of settings. An unknown name is an error; defaults are validated too."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
