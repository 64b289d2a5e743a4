"""Common ways to translate a setting of another tool. Pure."""

from __future__ import annotations

from collections.abc import Callable

from producer.translate.hocon import as_bool, as_text
from producer.translate.translation import Draft

#: Takes the value of a setting, and changes the draft.
Handler = Callable[[str, Draft], None]


def option(name: str) -> Handler:
    """Set the option to the setting's value."""
    return lambda value, draft: draft.add(name, as_text(value))


def is_limit(value: str) -> bool:
    """Return whether a number is a limit: 0 and less mean none, which is the default here."""
    text = as_text(value)
    return text != "0" and not text.startswith("-")


def unlimited(name: str) -> Handler:
    """Set the option to the setting's limit, if it has a limit."""

    def handle(value: str, draft: Draft) -> None:
        if is_limit(value):
            draft.add(name, as_text(value))

    return handle


def in_each_file(name: str) -> Handler:
    """Set the option to the setting's limit for each file, if it has a limit."""

    def handle(value: str, draft: Draft) -> None:
        if is_limit(value):
            draft.add(name, as_text(value))
            draft.add("--rows-per", "file")

    return handle


def flag(name: str, *, when: bool = True) -> Handler:
    """Set the option if the value is `when`."""

    def handle(value: str, draft: Draft) -> None:
        if as_bool(value) is when:
            draft.add(name)

    return handle


def note(text: str) -> Handler:
    """Only add a note: nothing is lost without the setting."""
    return lambda _, draft: draft.note(text)


def lose(text: str) -> Handler:
    return lambda _, draft: draft.lose(text)


def nothing(_: str, __: Draft) -> None:
    """Do nothing: another setting covers this."""


def lose_unless(usual: str, text: str) -> Handler:
    """Say what is lost, unless the setting has its usual value."""

    def handle(value: str, draft: Draft) -> None:
        if as_text(value).lower() != usual.lower():
            draft.lose(text)

    return handle
