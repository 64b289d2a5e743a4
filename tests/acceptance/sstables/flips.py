"""Copies of SSTables with one bit flipped."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import NamedTuple


class Flip(NamedTuple):
    """A bit of one file that is flipped."""

    component: str
    at: int
    bit: int

    @classmethod
    def of(cls, folder: Path, component: str, dice: random.Random) -> Flip:
        """Return any bit of the only SSTable of a folder."""
        (file,) = folder.glob(f"*-{component}")
        return cls(component, dice.randrange(file.stat().st_size), dice.randrange(8))

    def copied(self, folder: Path, copy: Path) -> None:
        """Copy the SSTable of a folder, with this bit flipped."""
        shutil.copytree(folder, copy)
        (file,) = copy.glob(f"*-{self.component}")
        data = bytearray(file.read_bytes())
        data[self.at] ^= 1 << self.bit
        file.write_bytes(data)
