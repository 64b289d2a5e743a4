"""Flower's options as people write them, and those that Flower could not read."""

from __future__ import annotations

from pathlib import Path

import flower.options  # noqa: F401 - defines the options
import pytest
from tornado.options import options

from producer.web.flower_options import check_variables, in_its_form
from ringhaul.errors import UsageError
from tests.cases import each


@each(
    ("words", "form"),
    [
        ("--port=5556", "--port=5556"),
        ("--port 5556", "--port=5556"),
        ("-port 5556", "--port=5556"),
        ("--url-prefix x --port 1", "--url-prefix=x --port=1"),
        ("--url_prefix x", "--url_prefix=x"),
        ("--address=", "--address="),
        ("--inspect_timeout -1", "--inspect_timeout=-1"),
        ("--persistent", "--persistent=true"),
        ("--persistent --port 1", "--persistent=true --port=1"),
        ("--read_only=False", "--read_only=false"),
        ("--read_only=off", "--read_only=false"),
        ("--read_only=On", "--read_only=true"),
        ("--logging debug", "--logging=debug"),
    ],
)
def test_a_value_follows_after_a_blank_or_an_equals_sign(words: str, form: str) -> None:
    before = {name: options[name] for name in options}
    assert in_its_form(words.split(), options) == form.split()
    assert {name: options[name] for name in options} == before


@each(
    ("words", "why"),
    [
        ("--port", "--port needs a value: --port=VALUE"),
        ("--port --persistent", "--port needs a value"),
        ("--port abc", "--port: Flower cannot read 'abc'"),
        ("--port=", "--port: Flower cannot read ''"),
        ("--inspect_timeout=x", "--inspect_timeout: Flower cannot read 'x'"),
        ("--prot=5556", "flower has no option --prot"),
        ("-A tasks", "flower has no option -A"),
        ("surplus", "flower takes options only, not 'surplus'"),
        ("--persistent true", "flower takes options only, not 'true'"),
        ("--", "flower takes options only, not '--'"),
        ("--read_only=maybe", "--read_only: not true or false: 'maybe'"),
        ("--conf none.py", "--conf: no such file: none.py"),
        ("--certfile=none.pem", "--certfile: no such file: none.pem"),
    ],
)
def test_what_flower_cannot_read_is_refused(words: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        in_its_form(words.split(), options)
    assert why in str(error.value)


def test_variables_are_checked_alike(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.touch()
    check_variables({"FLOWER_PORT": "1", "FLOWER_CERTFILE": str(file), "FLOWER_NONE": "x"}, options)
    for name, value in {"PORT": "abc", "PERSISTENT": "maybe", "CERTFILE": "none.pem"}.items():
        with pytest.raises(UsageError, match=f"FLOWER_{name}: "):
            check_variables({f"FLOWER_{name}": value}, options)
