"""The names of the files to which the standard input of a job is spooled. Pure."""

from __future__ import annotations

import os
import re

#: Name of the spool file in messages.
STANDARD_INPUT = "standard input"
#: Folder of spool files, in the state folder.
FOLDER = "spool"


def path_as_given(path: str, job_id: str) -> str:
    """Return the name of a job's source for people and programs: "standard input" for a spool file
    of any command and host."""
    folder, name = os.path.split(path)
    number = re.escape(job_id) + r"\.[0-9a-f]{8}\.csv"
    spooled = os.path.basename(folder) == FOLDER and re.fullmatch(number, name)
    return STANDARD_INPUT if spooled else path
