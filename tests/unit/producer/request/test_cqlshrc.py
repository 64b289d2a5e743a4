"""`--cqlshrc`: what is taken from a file of cqlsh."""

from __future__ import annotations

from pathlib import Path

import pytest

from producer.commands.job_options import job_options
from producer.commands.registry import find_command
from producer.options.load import LoadOptions
from producer.options.reads import UnloadOptions
from producer.request.cqlshrc import BYTES_MAX, apply_cqlshrc, read_cqlshrc
from producer.request.password import prompting_for_password
from producer.request.settings import connection_flags
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind

SAMPLE = """
; as cqlsh's own sample
[authentication]
keyspace = shop
credentials = secrets
[ui]
color = on
[connection]
hostname = db1
port = 9043
request_timeout = 20
ssl = true
[ssl]
certfile = ~/ca.pem
[copy]
delimiter = ;
null = -
[copy-from]
delimiter = |
skiprows = 2
[copy:shop.orders]
null = none
[copy-from:shop.orders]
header = false
maxbatchsize = 5
[copy-to]
floatprecision = 3
"""
SECRETS = "[PlainTextAuthProvider]\nusername = app\npassword = %s\n"


@pytest.fixture
def rc(tmp_path: Path) -> Path:
    path = tmp_path / "cqlshrc"
    path.write_text(SAMPLE)
    (tmp_path / "secrets").write_text(SECRETS % "hunter2")
    return path


def load(*words: object) -> LoadOptions:
    options = parse("load", "a.csv", *words)
    assert isinstance(options, LoadOptions)
    return options


def parse(name: str, *words: object) -> object:
    command = find_command(name)
    assert command is not None
    context = command.make_context(name, list(map(str, words)))
    apply_cqlshrc(context)
    return job_options(JobKind(name), context)


def test_the_connection(rc: Path) -> None:
    flags = connection_flags(load("-t", "orders", "--cqlshrc", rc))
    assert {key: value for key, value in flags.items() if value is not None} == {
        "cluster.contact_points": "db1",
        "cluster.port": "9043",
        "cluster.user": "app",
        "cluster.request_timeout_s": "20",
        "cluster.tls": "true",
        "cluster.tls_ca": str(Path("~/ca.pem").expanduser()),
    }
    given = connection_flags(load("-t", "orders", "--contact-points", "db2", "--cqlshrc", rc))
    assert (given["cluster.contact_points"], given["cluster.port"]) == ("db2", "9043")


def test_a_bundle_replaces_its_way_to_the_cluster(rc: Path) -> None:
    given = load("-t", "orders", "--cqlshrc", rc, "--secure-connect-bundle", "bundle.zip")
    flags = {key: value for key, value in connection_flags(given).items() if value is not None}
    assert flags["cluster.secure_connect_bundle"] == "bundle.zip"
    assert flags["cluster.request_timeout_s"] == "20"
    assert not {"cluster.contact_points", "cluster.tls", "cluster.tls_ca"} & flags.keys()


def test_without_ssl_the_section_of_that_name_is_ignored(rc: Path) -> None:
    rc.write_text(SAMPLE.replace("ssl = true", "ssl = false"))
    assert not [key for key in read_cqlshrc(rc).settings if "tls" in key]


def test_the_password_is_in_a_file_while_the_command_runs(rc: Path) -> None:
    options = load("-t", "orders", "--cqlshrc", rc)
    assert "hunter2" not in repr(options)
    with prompting_for_password(options) as prompted:
        assert prompted.password_file is not None
        assert Path(prompted.password_file).read_text() == "hunter2\n"
    # It belongs to its user, and a file that is given wins.
    with prompting_for_password(load("-t", "o", "-u", "me", "--cqlshrc", rc)) as prompted:
        assert prompted.password_file is None
    with prompting_for_password(
        load("-t", "o", "--password-file", "mine", "--cqlshrc", rc)
    ) as prompted:
        assert prompted.password_file == "mine"


def test_the_older_place_of_a_password(rc: Path) -> None:
    rc.write_text("[authentication]\nusername = old\npassword = hunter3\n")
    assert (read_cqlshrc(rc).user, read_cqlshrc(rc).password) == ("old", "hunter3")


def test_options_of_copy_by_section(rc: Path) -> None:
    options = load("-t", "orders", "--cqlshrc", rc)
    assert (options.keyspace, options.delimiter, options.header) == ("shop", "|", False)
    assert (options.null_strings, options.skip_rows) == (("none",), 2)
    assert {"delimiter", "header", "null_strings", "skip_rows"} <= options.given
    other = load("-t", "shop.other", "--cqlshrc", rc)
    assert (other.delimiter, other.header, other.null_strings) == ("|", True, ("-",))
    unload = parse("unload", "-t", "orders", "-o", "out", "--cqlshrc", rc)
    assert isinstance(unload, UnloadOptions)
    assert (unload.delimiter, unload.null) == (";", "none")


def test_options_of_the_command_line_win(rc: Path) -> None:
    options = load("--cqlshrc", rc, "-t", "orders", "-d", "x", "--header", "-k", "mine")
    assert (options.keyspace, options.delimiter, options.header) == ("mine", "x", True)
    assert options.null_strings == ("-",), "the section is that of shop.orders"


def test_options_of_copy_are_for_csv(rc: Path) -> None:
    assert load("-t", "orders", "--format", "jsonl", "--cqlshrc", rc).null_strings == ()


def test_what_has_no_counterpart_is_a_warning(rc: Path) -> None:
    command = find_command("unload")
    assert command is not None
    context = command.make_context("unload", ["-t", "s.o", "-o", "x", "--cqlshrc", str(rc)])
    (warning,) = apply_cqlshrc(context)
    assert "FLOATPRECISION has no counterpart" in warning and str(rc) in warning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[copy]\nspeed = 9\n", "COPY FROM has no option SPEED"),
        ("[copy-from]\nskiprows = many\n", "'many' is not a valid integer"),
        ("[copy]\nboolstyle = yes\n", "two words with a comma between"),
        ("port = 9042\n", "line 1 is neither a section"),
        ("[ui]\n= hunter2\n", "line 2 is neither a section"),
        ("[authentication]\ncredentials = nowhere\n", "nowhere: No such file"),
        ("x" * (BYTES_MAX + 1), f"more than {BYTES_MAX:,} bytes"),
        ("[ui]\nx = \udcff", "not UTF-8 at byte 9"),
    ],
)
def test_an_unusable_file_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rc"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(UsageError, match=message.replace("(", r"\(")) as failed:
        load("-t", "s.o", "--cqlshrc", path)
    assert "--cqlshrc" in str(failed.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load("-t", "s.o", "--cqlshrc", tmp_path / "none")


@pytest.mark.parametrize("secrets", ["password = hunter2\n", "[plain_text_auth]\n= hunter2\n"])
def test_a_malformed_file_does_not_show_its_secrets(rc: Path, secrets: str) -> None:
    (rc.parent / "secrets").write_text(secrets)
    with pytest.raises(UsageError, match=r"/secrets: line . is neither") as refusal:
        read_cqlshrc(rc)
    assert "hunter2" not in str(refusal.value)
