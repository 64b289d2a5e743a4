"""Files with settings of Bulk Loader: what is read, and what is refused by its line."""

from __future__ import annotations

import gc
import time

import pytest

from producer.translate.command import translate
from producer.translate.config_file import read_config
from producer.translate.translation import NotTranslatable, Translation
from tests.cases import each


@each(
    ("text", "found"),
    [
        ("", {}),
        ("# nothing\n\n// here", {}),
        ("a.b = 1, c { d : x y  z } // end", {"a.b": "1", "c.d": "x y z"}),
        ("{ a { b { c = 1 } } }", {"a.b.c": "1"}),
        ('a = "x, \\"y\\" # z" # why', {"a": '"x, \\"y\\" # z"'}),
        ('a = """C:\\x "y" """\n', {"a": '"C:\\\\x \\"y\\" "'}),
        ('a = """"""', {"a": '""'}),
        ('a = [1, "b,c" // x\n two words, ]', {"a": '[1,"b,c",two words]'}),
        ("a = []\nb =\n  2", {"a": "[]", "b": "2"}),
        ("a = 1\na = 2\nb = 3\nb = null", {"a": "2"}),
        ("a { b = 1 }\na.c = 2\na { b = 3 }", {"a.c": "2", "a.b": "3"}),
        ('"a" { "b".c = 1 }\r\n', {"a.b.c": "1"}),
        ("a = 50%\nb = file:x", None),
        ('include classpath("driver.conf")\na = 1', {"a": "1"}),
        ('\ufeffinclude "driver.conf"', {}),
        ("include = 1", {"include": "1"}),
    ],
)
def test_what_is_read(text: str, found: dict[str, str] | None) -> None:
    if found is None:  # HOCON keeps the colon for itself
        with pytest.raises(NotTranslatable):
            read_config(text, "x.conf")
    else:
        assert read_config(text, "x.conf") == found


@each(
    ("text", "message"),
    [
        ("a = 1\nb = ${HOME}", "line 2: ${...} is not read: write the value itself"),
        ('a = 1\n\ninclude "more.conf"', "line 3: include is not read: put the settings"),
        ("include file(x)", "line 1: include is not read"),
        ("a = [1, [2]]", "line 1: a list or an object within a list"),
        ("a += 1", "line 1: += is not read"),
        ("a { b = 1", "line 1: a } is missing"),
        ("a = 1 }", "a } without a {"),
        ('a = "secret', "line 1: a value is missing"),
        ("secret", "line 1: = or { is missing behind the name of a setting"),
        ("a = 1 = secret", "line 1: something follows a value"),
        ("{ a = 1 }\nb = 2", "line 2: something follows the last }"),
        ("a..b = 1", "the name of a setting is missing"),
        ("= 1", "the name of a setting is missing"),
        ("a{" * 101, "more than 100 objects within each other"),
    ],
)
def test_what_is_refused_names_the_line_and_not_its_content(text: str, message: str) -> None:
    with pytest.raises(NotTranslatable) as refused:
        read_config(text, "x.conf")
    said = str(refused.value)
    assert said.startswith("dsbulk: -f x.conf, line ") and message in said
    assert "secret" not in said


@each(
    "piece",
    ["a{", '"', '"""', '" ', "[", "a=1,", "a.", "# ", "$", "/", '\\"', '"\\', "a b ", "include "],
)
def test_a_long_file_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        gc.disable()  # it may look through all of pytest's objects
        try:
            started = time.process_time()
            for start in ("", "a = ", "a = [", "a { "):
                try:
                    read_config(start + text, "x.conf")
                except NotTranslatable:
                    continue
            return time.process_time() - started
        finally:
            gc.enable()

    short = long = float("inf")
    for _ in range(12):  # on a busy machine the shortest time counts
        short, long = min(short, seconds(5_000)), min(long, seconds(40_000))
        if long < 24 * max(short, 0.005):
            return
    pytest.fail(f"{short * 1e3:.2f} ms become {long * 1e3:.2f} ms of 8 times the length")


def one(text: str, files: dict[str, str]) -> Translation:
    (found,) = translate(text, files.__getitem__)
    return found


#: The values that Bulk Loader has without a file.
DEFAULTS = """
dsbulk {
  connector {
    name = csv
    csv { url = "-", delimiter = ",", header = true, skipRecords = 0, maxRecords = -1,
      quote = "\\"", escape = "\\\\", comment = "\\u0000", nullValue = "AUTO", emptyValue = "AUTO"
      urlfile = "", recursive = false, fileNamePattern = "**/*.csv", newline = "auto" }
    json { urlfile = "", mode = "MULTI_DOCUMENT", parserFeatures { ALLOW_COMMENTS = false } }
  }
  codec { geo = WKT, nullStrings = [], booleanStrings = ["1:0", "Y:N"], uuidStrategy = RANDOM
    number = "#,###.##", formatNumbers = false, overflowStrategy = REJECT }
  runner.promptForPasswords = true
  engine.dryRun = false
}
"""


def test_settings_of_a_file_yield_to_those_of_the_command_line() -> None:
    files = {
        "x.conf": 'dsbulk.schema { keyspace = s, table = t }\ndsbulk.connector.csv.delimiter = ";"'
    }
    found = one("dsbulk load -f x.conf -url x.csv -delim '|'", files)
    assert "--table s.t" in found.line and "--delimiter '|'" in found.line
    again = one("dsbulk load -delim '|' -url x.csv -f x.conf", files)
    assert sorted(again.words) == sorted(found.words)
    assert one("dsbulk count -f x.conf", files).line == "ringhaul count --table s.t"


@pytest.mark.parametrize(
    "text", ["load -url x.csv", "load -c json -url x.json", "unload -url out/", "count"]
)
def test_a_file_of_defaults_changes_nothing(text: str) -> None:
    bare = one(f"dsbulk {text} -k s -t t", {})
    found = one(f"dsbulk {text} -k s -t t -f x.conf", {"x.conf": DEFAULTS})
    assert found.exact == bare.exact
    stated = set(found.words) - set(bare.words)
    harmless = {"--delimiter", ",", "--quote", '"', "--true-words", "--false-words", "1,Y", "0,N"}
    harmless |= {"true,t,yes,y,1", "false,f,no,n,0"}
    assert stated <= harmless


def test_members_of_a_map_are_one_setting() -> None:
    features = "dsbulk.connector.json.parserFeatures { ALLOW_COMMENTS = true, X = false }"
    found = one("dsbulk load -c json -k s -t t -url x.json -f x.conf", {"x.conf": features})
    assert "--json-layout commented" in found.line and found.complete


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("connector.csv.url = x", "connector.csv.url is not within dsbulk { }"),
        ("dsbulk.connector.csv.delimeter = x", "did you mean --connector.csv.delimiter"),
    ],
)
def test_settings_that_bulk_loader_does_not_have(text: str, message: str) -> None:
    with pytest.raises(NotTranslatable) as refused:
        one("dsbulk load -k s -t t -f x.conf", {"x.conf": text})
    assert message in str(refused.value)


def test_a_password_of_a_file_is_left_out() -> None:
    text = "datastax-java-driver.advanced.auth-provider { username = joe, password = hunter2 }"
    found = one("dsbulk count -k s -t t -f x.conf", {"x.conf": text})
    assert "--password" in found.words and "hunter2" not in found.line + str(found.notes)
