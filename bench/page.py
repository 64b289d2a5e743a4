"""Write the figures of docs/explanation/benchmarks.md, and its pictures, from bench/results.

People write the text of a page; what stands between `<!-- bench:NAME -->` and `<!-- /bench -->` is
written by `python -m bench.page`, after a bench has run. A test compares. A row of the articles
that has no result says so, with the command that runs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.articles import ROWS, Row
from bench.chart import PICTURE, draw
from bench.full import FULL, command_of
from bench.harness import RESULTS
from bench.latency_seeds import CELERY, DELAYS_MS, PATTERNS, name_of
from bench.latency_seeds import OURS as OURS_FAR
from bench.picture import Bar, Panel, picture
from bench.record import Line, Record, read_record

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    ROOT / "docs" / name
    for name in (
        "explanation/benchmarks.md",
        "explanation/scaling.md",
        "how-to/distance.md",
        "reference/commands/worker.md",
    )
)
PICTURES = ROOT / "docs" / "pictures"
_BLOCK = re.compile(r"(<!-- bench:([\w-]+(?: [\w-]+)*) -->\n).*?(<!-- /bench -->)", re.DOTALL)
_OURS, _THEIRS = "#1f6feb", "#9aa4af"
#: Result -> what its picture is about. It has all rows of the articles from this result.
_PICTURES = {
    "exec_seeds": "One query, many times",
    "load_kb1": "Rows of 1 kB",
    "latency_seeds": "A cluster 10 ms away",
    "load_seeds": "Small rows",
    "census_ways": "Census records",
}
#: Result -> what the picture of all its systems is about.
_SYSTEM_PICTURES = {"load_sstables": "Rows as SSTables, over CQL, and by COPY"}
#: Result -> the figure of the fourth article that it is.
_CENSUS = {
    "census_geo": "geographic records",
    "census_wide": "wide records, queue being filled",
    "census_ways": "wide records, queue filled",
}
#: Ours is ahead above this ratio.
_AHEAD = 1.0

Find = Callable[[str], Record | None]


def written(text: str, find: Find = read_record) -> str:
    """Return a page with its blocks written again."""
    return _BLOCK.sub(lambda match: match[1] + _block(match[2], find) + "\n" + match[3], text)


def _block(words: str, find: Find) -> str:
    """Return the content of a block; its name may have an argument: `systems load_small`."""
    name, _, argument = words.partition(" ")
    return _BLOCKS[name](argument, find)


def rows_block(_: str, find: Find) -> str:
    """Write every row of the articles beside ours."""
    head = (
        "row",
        "the article's way",
        "its figures there",
        "rows/s here",
        "ringhaul",
        "times as fast",
        "CPU us a row",
        "ringhaul",
    )
    return table(head, [_row(row, find) for row in ROWS], left=3)


def _row(row: Row, find: Find) -> list[str]:
    begin = [row.row, row.what, row.article]
    if row.shown:
        return [*begin, row.shown, "", "", "", ""]
    pair = lines_of(row, find)
    if pair is None:
        return [*begin, f"not run: `{command_of(row.result)}`", "", "", "", ""]
    theirs, ours = pair
    return [
        *begin,
        _rate(theirs.rate),
        _rate(ours.rate_beside(theirs)),
        _times(ours.rate_beside(theirs) / theirs.rate),
        _us(theirs.cpu_us_per_row),
        _us(ours.cpu_beside(theirs)),
    ]


def lines_of(row: Row, find: Find) -> tuple[Line, Line] | None:
    """Return the article's system and ours; None if the bench has not run."""
    record = find(row.result) if row.result else None
    if record is None or row.shown:
        return None
    return record.named(row.theirs), record.named(row.ours)


def behind(row: Row, find: Find) -> list[str]:
    """Return in what ours is not ahead: `rows/s`, `CPU per row`, both or nothing."""
    pair = lines_of(row, find)
    if pair is None:
        return []
    theirs, ours = pair
    found = ["rows/s"] if ours.rate_beside(theirs) / theirs.rate <= _AHEAD else []
    if (ours.cpu_beside(theirs) or 0) >= (theirs.cpu_us_per_row or float("inf")):
        found.append("CPU per row")
    return found


def behind_block(_: str, find: Find) -> str:
    """Write where ours is not ahead, and why; and which rows have not run."""
    lost = [(row, what) for row in ROWS if (what := behind(row, find))]
    lines = [f"- **{row.row}, {row.what}**, in {' and '.join(w)}: {row.why}." for row, w in lost]
    if not lost:
        lines = ["ringhaul is ahead in rows/s and in CPU per row in every row that was run."]
    missing = [row for row in ROWS if not row.shown and find(row.result) is None]
    if missing:
        names = ", ".join(dict.fromkeys(row.row for row in missing))
        lines += ["", f"Some systems of these rows have not been run: {names}."]
    return "\n".join(lines)


def runs_block(_: str, find: Find) -> str:
    """Write where each figure of the page comes from."""
    head = ("result", "date", "rounds", "rows", "load average before, after", "command")
    cells, machines = [], []
    for name in dict.fromkeys(name for bench in FULL for name in bench.results):
        record = find(name)
        if record is None:
            continue
        machines.append(record.machine)
        most = max(record.lines, key=lambda line: line.rows, default=None)
        load = [record.load_before, record.load_after]
        cells.append(
            [
                f"`{name}`",
                record.date,
                str(most.rounds) if most else "",
                f"{most.rows:,}" if most and most.rows else "",
                "not recorded" if None in load else " and ".join(f"{one:.1f}" for one in load),
                f"`{record.command}`",
            ]
        )
    text = [f"Machine: {machine}." for machine in dict.fromkeys(machines)]
    notes = {record.note: "" for name, *_ in cells if (record := find(name.strip("`")))}
    text += [note for note in notes if note]
    return "\n\n".join([*text, table(head, cells, left=2)])


def systems_block(name: str, find: Find) -> str:
    """Write all systems of a result."""
    record = find(name)
    if record is None:
        return _not_run(name)
    ours = max((line for line in record.lines if line.family == "ringhaul"), key=lambda x: x.rate)
    head = ("system", "rows/s", "start to exit", "CPU us a row", "in workers", "ringhaul is faster")
    cells = [
        [
            line.name,
            _rate(line.rows_s),
            _rate(line.rows_s_whole),
            _us(line.cpu_us_per_row),
            _us(line.worker_cpu_us_per_row),
            _times(ours.rate_beside(line) / line.rate)
            if line.family not in ("ringhaul", "limit")
            else "",
        ]
        for line in record.lines
    ]
    return table(head, cells, left=1)


def table_block(name: str, find: Find) -> str:
    """Write the table of a result."""
    record = find(name)
    if record is None:
        return _not_run(name)
    cells = [[cell if isinstance(cell, str) else _number(cell) for cell in r] for r in record.rows]
    # Without its options, which a reader of the page of a command would take for those of ringhaul.
    command, _, _ = record.command.partition(" --")
    title = record.title
    if not title[1].isupper():  # "CPU" stays
        title = title[0].lower() + title[1:]
    return f"`{command}`, {title}:\n\n{table(record.columns, cells, left=1)}"


def latency_block(_: str, find: Find) -> str:
    """Write rates and CPU of the second article's ways, by delay."""
    record = find("latency_seeds")
    if record is None:
        return _not_run("latency_seeds")
    labels = [*(pattern.label for pattern in PATTERNS), CELERY, OURS_FAR]
    head = ("rows/s (CPU us a row), by milliseconds each way", *(f"{ms:g} ms" for ms in DELAYS_MS))
    by_name = {line.name: line for line in record.lines}
    cells = [
        [label, *(_rate_and_us(by_name.get(name_of(label, ms))) for ms in DELAYS_MS)]
        for label in labels
    ]
    return table(head, cells, left=1)


def census_block(_: str, find: Find) -> str:
    """Write the fourth article's three figures for each of its ways, and for ours."""
    records = [record for name in _CENSUS if (record := find(name)) is not None]
    if len(records) < len(_CENSUS):
        return _not_run(next(iter(_CENSUS)))
    by_name = [{line.name: line for line in record.lines} for record in records]
    names = dict.fromkeys(name for lines in by_name for name in lines)
    cells = [[name, *(_rate_and_us(lines.get(name)) for lines in by_name)] for name in names]
    return table(("rows/s (CPU us a row)", *_CENSUS.values()), cells, left=1)


def _rate_and_us(line: Line | None) -> str:
    if line is None or line.cpu_us_per_row is None:
        return "" if line is None else _rate(line.rows_s)
    return f"{_rate(line.rows_s)} ({_us(line.cpu_us_per_row)})"


def distance_block(_: str, find: Find) -> str:
    """Write the rates of ours by delay, as shares of the rate without one."""
    record = find("load_latency")
    if record is None:
        return _not_run("load_latency")
    head = ("rows/s (share of the rate at 0 ms)", "0 ms", "10 ms each way", "100 ms each way")
    cells = []
    for what in ("load", "unload"):
        rates = [record.named(f"ringhaul {what}, {ms} ms each way").rows_s for ms in (0, 10, 100)]
        shares = [f"{_rate(rate)} ({rate / rates[0]:.2f})" for rate in rates[1:]]
        cells.append([f"`ringhaul {what}`", _rate(rates[0]), *shares])
    return table(head, cells, left=1)


def picture_block(name: str, find: Find) -> str:
    """Write the link to the picture of a result."""
    if find(name) is None:
        return _not_run(name)
    title = (_PICTURES | _SYSTEM_PICTURES)[name]
    return f"![{title}: rows per second](../pictures/{_picture_path(name).name})"


_BLOCKS: dict[str, Callable[[str, Find], str]] = {
    "rows": rows_block,
    "behind": behind_block,
    "runs": runs_block,
    "systems": systems_block,
    "table": table_block,
    "latency": latency_block,
    "census": census_block,
    "distance": distance_block,
    "picture": picture_block,
}


def pictures(find: Find = read_record) -> dict[Path, str]:
    """Return the SVG of each picture whose result is there: ours beside the article's ways."""
    found = {}
    for name, title in _PICTURES.items():
        record = find(name)
        if record is None:
            continue
        rows = [row for row in ROWS if row.result == name]
        pairs = [pair for row in rows if (pair := lines_of(row, find))]
        best, _ = max(pairs, key=lambda pair: pair[0].rate)
        mine = pairs[0][1].rate_beside(best)
        bars = [Bar("ringhaul", mine, _OURS)]
        bars += [Bar(theirs.name, theirs.rate, _THEIRS) for theirs, _ in pairs]
        found[_picture_path(name)] = picture(
            f"{title}: ringhaul is {_times(mine / best.rate)} as fast",
            f"as the best other way; {record.machine.partition(',')[0]}, {record.date}",
            [Panel("rows per second, longer is better", bars)],
        )
    for name, title in _SYSTEM_PICTURES.items():
        record = find(name)
        if record is not None:
            found[_picture_path(name)] = _picture_of_all(record, title)
    small, unload = find("load_small"), find("unload_small")
    if small is not None and unload is not None:
        found[PICTURE] = draw(small, unload)
    return found


def _picture_of_all(record: Record, title: str) -> str:
    """Return the SVG of all systems of a result, whole commands."""
    bars = [
        Bar(line.name, line.rate, _OURS if line.family == "ringhaul" else _THEIRS)
        for line in record.lines
    ]
    rows = max(line.rows for line in record.lines)
    note = f"{rows:,} rows, from start to exit; {record.machine.partition(',')[0]}, {record.date}"
    return picture(title, note, [Panel("rows per second, longer is better", bars)])


def _picture_path(name: str) -> Path:
    return PICTURES / f"bench-{name.replace('_', '-')}.svg"


def write_pages() -> list[Path]:
    """Write all pages and pictures; return those that changed."""
    texts = {page: written(page.read_text()) for page in PAGES} | pictures()
    changed = []
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            changed.append(path)
    return changed


def _not_run(name: str) -> str:
    return f"not run: `{command_of(name)}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    """Format a Markdown table; the first `left` columns are text, the others numbers."""
    rules = ["---" if column < left else "--:" for column in range(len(head))]
    body = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    body.insert(1, "|" + "|".join(rules) + "|")
    return "\n".join(re.sub(r" +\|", " |", line) for line in body)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.0f}"


def _us(cpu_us: float | None) -> str:
    if cpu_us is None:
        return ""
    return f"{cpu_us:,.0f}" if cpu_us >= 100 else f"{cpu_us:.1f}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"


def _number(value: float) -> str:
    return f"{value:,}"


if __name__ == "__main__":
    for _path in write_pages():
        print(f"written: {_path.relative_to(ROOT)}")
    if not any(RESULTS.glob("*.json")):
        print("bench/results is empty: no bench has run")
