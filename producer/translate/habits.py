"""Words of cqlsh and of Bulk Loader on ringhaul's own command line, and what to do instead.

Without this, `-url x` would be read as `-u rl`, and `-h HOST` would show the help and exit with 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import rich_click as click

from producer.translate.setting_names import SHORTCUTS

#: Commands that Bulk Loader also has.
_SHARED = ("load", "unload", "count")
#: Words that users of other tools type as a command -> what to do.
_OTHER_TOOLS = {
    "copy": 'for a COPY of cqlsh run `ringhaul translate "COPY ..."`',
    "cqlsh": 'for a COPY of cqlsh run `ringhaul translate "COPY ..."`',
    "dsbulk": "for a command of Bulk Loader run `ringhaul translate dsbulk ...`",
    "sstableloader": "`ringhaul load --via streaming` sends files to the nodes as SSTables",
}


def advise_other_tool(word: str) -> str:
    """Return what to do instead of this command of another tool; empty: it is no such command."""
    return _OTHER_TOOLS.get(word.lower(), "")


def refuse_bulk_loader_options(name: str, command: click.Command, words: Sequence[str]) -> None:
    """Raise `click.UsageError` for an option in the form that only Bulk Loader has."""
    if name not in _SHARED:
        return
    for word, following in _options(words, _with_values(command)):
        if word == "-h" and following and not following.startswith("-"):
            raise click.UsageError(
                f"-h shows the help, and takes no value. For the nodes give --contact-points "
                f"{following}"
            )
        option = word.partition("=")[0]
        if _is_shortcut(option):
            raise click.UsageError(
                f"{option} is an option of Bulk Loader. `ringhaul translate "
                f"dsbulk {name} ...` prints the same command for ringhaul"
            )


def _is_shortcut(option: str) -> bool:
    # Shortcuts of one letter are ringhaul's own.
    return len(option) > 2 and option[0] == "-" and option[1:] in SHORTCUTS


def _with_values(command: click.Command) -> Collection[str]:
    """Return the options that take the next word as their value."""
    return {
        spelling
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.is_flag
        for spelling in parameter.opts
    }


def _options(words: Sequence[str], with_values: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each word that is not the value of an option, and the word that follows it."""
    is_value = False
    for at, word in enumerate(words):
        if is_value:
            is_value = False
        elif word == "--":
            return
        else:
            is_value = word in with_values
            yield word, words[at + 1] if at + 1 < len(words) else ""
