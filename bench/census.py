"""Files of the census shape: geographic records of fixed width, and wide records, in zip archives.

The layout is that of the geographic header record of the US Census 2010, Summary File 1 (technical
documentation SF1/10-4, figure 2-5): 500 characters, of which the fields here are read. The data
files of that publication have a line of comma-separated counts for each place, whose first fields
name it, and a dictionary that says to which table each count belongs. The contents are made up.
"""

from __future__ import annotations

import random
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from bench.data import SEED, Table

#: Characters of a geographic record.
GEO_CHARACTERS = 500
#: Field -> its first and last character, from 1.
GEO_FIELDS = {
    "stusab": (7, 8),
    "sumlev": (9, 11),
    "logrecno": (19, 25),
    "state": (28, 29),
    "county": (30, 32),
    "tract": (55, 60),
    "arealand": (199, 212),
    "areawatr": (213, 226),
    "name": (227, 316),
    "pop100": (319, 327),
    "hu100": (328, 336),
    "intptlat": (337, 347),
    "intptlon": (348, 359),
}
GEO_TYPES = {
    "logrecno": "int",
    "arealand": "bigint",
    "areawatr": "bigint",
    "pop100": "int",
    "hu100": "int",
    "intptlat": "double",
    "intptlon": "double",
}
#: The columns of the table that have an index.
GEO_INDEXED = ("county", "sumlev")
#: The first fields of a wide record, as published, and its counts.
WIDE_HEAD = ("fileid", "stusab", "chariter", "cifsn", "logrecno")
WIDE_ITEMS = tuple(f"p{number:03}" for number in range(1, 201))
#: Different places in a file of geographic records.
PLACES = 4096


def geo_lines(records: int, draw: random.Random) -> Iterator[str]:
    """Yield geographic records, each with its line end.

    Their places repeat after some thousands, so that gigabytes are written in a minute.
    """
    places = [_place(draw) for _ in range(PLACES)]
    for number in range(1, records + 1):
        before, between, after = places[number % PLACES]
        name = f"Census Tract {number}, Block Group {number % 9}"
        yield f"{before}{number:07}{between}{name:<90}{after}"


def _place(draw: random.Random) -> tuple[str, str, str]:
    """Return what is before the number of a record, between it and the name, and behind that."""
    sumlev = draw.choice(("050", "140", "150"))
    state, county, tract = "36", f"{draw.randrange(1, 124):03}", f"{draw.randrange(10**6):06}"
    land, water = draw.randrange(10**9), draw.randrange(10**8)
    people, houses = draw.randrange(9000), draw.randrange(4000)
    place = f"+{draw.uniform(40, 45):.7f}-{draw.uniform(72, 79):011.7f}"
    return (
        f"{'':6}NY{sumlev}{'':7}",
        f"{'':2}{state}{county}{'':22}{tract}{'':138}{land:>14}{water:>14}",
        f"{'':2}{people:>9}{houses:>9}{place}{'':141}\n",
    )


def wide_lines(records: int, draw: random.Random) -> Iterator[str]:
    """Yield wide records, each with its line end."""
    for number in range(1, records + 1):
        counts = ",".join(str(draw.randrange(20_000)) for _ in WIDE_ITEMS)
        yield f"SF1ST,NY,000,01,{number:07},{counts}\n"


#: The tables. Wide records become the rows of the second one, 200 each.
GEO = Table(
    "geo",
    ("logrecno", *(name for name in GEO_FIELDS if name != "logrecno")),
    ", ".join(f"{name} {GEO_TYPES.get(name, 'text')}" for name in GEO_FIELDS)
    + ", PRIMARY KEY (logrecno)",
    geo_lines,
)
COUNTS = Table(
    "counts",
    ("logrecno", "item", "matrix", "value"),
    "logrecno int, item text, matrix text, value bigint, PRIMARY KEY (logrecno, item)",
    wide_lines,
)
DICTIONARY = Table(
    "dictionary",
    ("segment", "item", "matrix"),
    "segment text, item text, matrix text, PRIMARY KEY (segment, item)",
    lambda _, __: iter(()),
)


def geo_layout(folder: Path) -> Path:
    """Write the layout of geographic records, as `--layout` reads it."""
    path = folder / "geo.layout"
    lines = [f"{name},{first},{last}\n" for name, (first, last) in GEO_FIELDS.items()]
    path.write_text("".join(["name,first,last\n", *lines]))
    return path


def dictionary_rows() -> list[tuple[str, str]]:
    """Return the item and the matrix of each count of a wide record."""
    return [(item, f"P{number // 20:03}") for number, item in enumerate(WIDE_ITEMS)]


def dictionary_file(folder: Path) -> Path:
    """Write the dictionary as the shipped transform `split_wide` reads it."""
    path = folder / "dictionary.csv"
    lines = [f"{item},{matrix}\n" for item, matrix in dictionary_rows()]
    path.write_text("".join(["item,matrix\n", *lines]))
    return path


def zip_file(folder: Path, table: Table, records: int) -> Path:
    """Return a zip archive with one member of so many records; write it if it is missing.

    Written as a stream: neither memory nor disk ever hold the records unpacked.
    """
    path = folder / f"census-{table.name}-{records}.zip"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        write_zip(partial, "ny2010.sf1", table.lines(records, random.Random(SEED)))
        partial.rename(path)
    return path


def write_zip(path: Path, member: str, lines: Iterable[str]) -> None:
    """Write a zip archive with one member."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(member, "w", force_zip64=True) as out,
    ):
        source = iter(lines)
        while part := "".join(islice(source, 2000)):
            out.write(part.encode())
