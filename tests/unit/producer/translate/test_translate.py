"""Commands of cqlsh COPY and Bulk Loader, translated."""

from __future__ import annotations

import contextlib
import json
import shlex
import time

import pytest

from producer.migrate.command import translate_command
from producer.migrate.guard import checked
from producer.translate.command import translate
from producer.translate.copy_options import COPY_OPTIONS
from producer.translate.hocon import as_bytes
from producer.translate.queries import qualified, renamed
from producer.translate.setting_names import SHORTCUTS
from producer.translate.settings import HANDLERS
from producer.translate.translation import NotTranslatable, Translation
from ringhaul.errors import UsageError
from tests.cases import each


def one(text: str) -> Translation:
    (found,) = translate(text)
    return found


def accept(translation: Translation) -> None:
    """Check that the command runs, as far as that shows without a cluster."""
    assert checked(translation) == translation, checked(translation).notes[-1]


#: What COPY TO does without options.
ESCAPE = r"--escape '\'"
MOMENTS = "--timestamp-format 'yyyy-MM-dd HH:mm:ss.SSSxx'"
WORDS = "--true-words True --false-words False"
_OTHER_NUMBERS = r"--escape '\' --escape-style quoted --blob any --accept all"
_VALUES = (
    r"--values-escape '\' --values-escape-style quoted --values-blob any --values-accept all "
    "--values-thousands-sep ,"
)
_LOAD = f"{_OTHER_NUMBERS} --thousands-sep ,"


@each(
    ("text", "line"),
    [
        (
            "COPY shop.orders (region, id) FROM 'a.csv, b.csv' WITH HEADER = true;",
            r"load a.csv b.csv --table shop.orders --columns region,id --escape '\' --null-quoted "
            "--nulls tombstone",
        ),
        (
            "COPY shop.\"Orders\" FROM STDIN WITH DELIMITER=';' AND NULL='it''s'",
            "load - --table shop.Orders --no-header --escape '\\' --null-quoted "
            "--nulls tombstone --delimiter ';' "
            "--null 'it'\"'\"'s'",
        ),
        (
            "copy t from 'x.csv' with skiprows = 3 and maxrows = 10 and maxrows=-1 and TTL=9",
            r"load x.csv --table t --no-header --escape '\' --null-quoted "
            "--nulls tombstone --skip-rows 3 --ttl 9",
        ),
        (
            "COPY s.t FROM 'x' WITH SKIPROWS = -1 AND MAXROWS = 10",
            r"load x --table s.t --no-header --escape '\' --null-quoted --nulls tombstone "
            "--max-rows 10",
        ),
        (
            "COPY s.t FROM 'x' WITH SKIPROWS = 3 AND MAXROWS = 10",
            r"load x --table s.t --no-header --escape '\' --null-quoted "
            "--nulls tombstone --skip-rows 3 --max-rows 7",
        ),
        (
            "COPY s.t (a) TO STDOUT WITH HEADER=true AND BOOLSTYLE = 'Ja, Nein'",
            f"unload --table s.t --output - --columns a {ESCAPE} {MOMENTS} --true-words Ja "
            "--false-words Nein",
        ),
        (
            """cqlsh -k shop -u joe -e "COPY orders\nTO '/out' -- a comment" db1 9043""",
            "unload --table shop.orders --user joe --contact-points db1 --port 9043 --output /out "
            f"--no-header {ESCAPE} {MOMENTS} {WORDS} --single-file --password",
        ),
        (
            "CONSISTENCY QUORUM; USE shop; COPY orders FROM 'it;s.csv';",
            r"load 'it;s.csv' --table shop.orders --consistency QUORUM --no-header --escape '\' "
            "--null-quoted --nulls tombstone",
        ),
        (
            "dsbulk load -k shop -t orders -url orders.csv",
            f"load orders.csv --table shop.orders {_LOAD}",
        ),
        (
            "/opt/dsbulk-1.11/bin/dsbulk load -url /data/in -k s -t t \\\n"
            "  -header false -delim '\\t' --schema.allowExtraFields=false -escape '\"'",
            "load '/data/in/*.csv' --table s.t --blob any "
            "--accept all --thousands-sep , --no-header --delimiter '\\t'",
        ),
        (
            "dsbulk load -url dir -k s -t t --connector.csv.recursive true -escape x "
            '-nullStrings \'["NULL", "-"]\' -h \'h1, "h2"\' -maxErrors 5% -cl ONE -dryRun',
            "load 'dir/**/*.csv' --table s.t --escape x --escape-style quoted "
            "--blob any "
            "--accept all --thousands-sep , --null NULL --null - --null '' --null-quoted "
            "--fill-quoted '' "
            "--contact-points h1,h2 --max-errors 5% --consistency ONE --dry-run",
        ),
        (
            "dsbulk load -url x.csv -k s -t t "
            '--driver.basic.contact-points \'["h1:9043", "h2:9043"]\' '
            "--driver.basic.load-balancing-policy.local-datacenter dc2 "
            "--datastax-java-driver.basic.request.consistency ONE",
            f"load x.csv --table s.t {_LOAD} "
            "--contact-points h1,h2 --port 9043 --local-dc dc2 --consistency ONE",
        ),
        (
            "dsbulk load -c json -url a.json -k s -t t --connector.json.mode SINGLE_DOCUMENT "
            "--connector.csv.delimiter ';'",
            "load a.json --table s.t --format jsonl --allow-extra-fields --blob any --accept all "
            "--json-layout documents",
        ),
        (
            "dsbulk load -url x.csv -k s -t t -m '*=*, a=b' --codec.timestamp UNITS_SINCE_EPOCH "
            "--codec.unit SECONDS --codec.date dd.MM.yyyy --codec.booleanNumbers '[9,8]' "
            "-locale de_DE --codec.roundingStrategy HALF_UP --codec.overflowStrategy TRUNCATE",
            f"load x.csv --table s.t {_OTHER_NUMBERS} "
            "--mapping '*=*, a=b' --epoch-unit s --locale de "
            "--decimal-sep , --thousands-sep . --rounding half-up --overflow clamp "
            "--date-format dd.MM.yyyy --timestamp-format s --true-words "
            "true,t,yes,y,1,9 --false-words false,f,no,n,0,8",
        ),
        (
            "dsbulk load -query 'INSERT INTO s.t (a) VALUES (:a)' -url x.csv -header false -ttl",
            "exec 'INSERT INTO s.t (a) VALUES (:a)' --params x.csv --values-escape '\\' "
            "--values-escape-style quoted --values-allow-extra-fields --values-blob any "
            "--values-accept all --values-thousands-sep , "
            "--no-values-header",
        ),
        (
            "dsbulk unload -query 'SELECT a FROM s.t' -url out -c json --codec.binary HEX "
            "--connector.json.prettyPrint true -maxRecords 10",
            "unload --output out --format jsonl --blob hex --file-name-format output-%06d.json "
            "--query 'SELECT a FROM s.t' "
            "--max-rows-per-file 10",
        ),
        (
            "dsbulk unload -url out -query 'SELECT a FROM s.t WHERE token(a) > :start AND "
            "token(a) <= :end'",
            "unload --output out --escape '\\' --escape-style quoted --blob base64 "
            "--query 'SELECT a FROM s.t' --true-words 1 "
            "--false-words 0",
        ),
        (
            'dsbulk unload -url out -query \'select a from s.t where Token(a, "B")>=:x and '
            'token(a, "B")<:y  AND c > 5 LIMIT 9\'',
            "unload --output out --escape '\\' --escape-style quoted --blob base64 "
            "--query 'select a from s.t WHERE c > 5 LIMIT 9' "
            "--true-words 1 --false-words 0",
        ),
        (
            "dsbulk unload -url out -query 'SELECT a FROM s.t WHERE c > 5 AND token(a) > :start "
            "AND token(a) <= :end ALLOW FILTERING'",
            "unload --output out --escape '\\' --escape-style quoted --blob base64 "
            "--query 'SELECT a FROM s.t WHERE c > 5 ALLOW FILTERING' --true-words 1 "
            "--false-words 0",
        ),
        (
            "dsbulk count -k s -t t -b secure-connect-shop.zip -u token",
            "count --table s.t --secure-connect-bundle secure-connect-shop.zip --user token "
            "--password",
        ),
        (
            'cqlsh -b bundle.zip -u token -e "COPY s.t TO STDOUT WITH HEADER = true"',
            "unload --table s.t --secure-connect-bundle bundle.zip --user token --output - "
            f"{ESCAPE} {MOMENTS} {WORDS} --password",
        ),
        (
            "dsbulk load -url in -k s -t t -skipRecords 3 -maxRecords 10 -nullValue none "
            "--connector.csv.emptyValue EMPTY",
            f"load 'in/*.csv' --table s.t {_LOAD} "
            "--skip-rows 3 --rows-per file --max-rows 10 --fill-empty none --fill-quoted EMPTY",
        ),
        (  # what the text becomes means null, so the field is null, too
            "dsbulk load -url x.csv -k s -t t -nullValue NULL -nullStrings NULL",
            f"load x.csv --table s.t {_LOAD} --null NULL --null '' --null-quoted --fill-quoted ''",
        ),
        (
            "dsbulk unload -url out -k s -t t -encoding latin1 -comment '#' -newline '\\r\\n' "
            "--connector.csv.emptyValue EMPTY -nullValue NULL "
            "--connector.csv.ignoreLeadingWhitespaces true",
            "unload --table s.t --output out --escape '\\' --escape-style quoted --blob base64 "
            "--encoding latin1 --comment '#' "
            "--line-end crlf --empty-word EMPTY --null NULL --trim text --true-words 1 "
            "--false-words 0",
        ),
        (
            "COPY s.t TO 'x.txt' WITH ENCODING = 'cp1252'",
            f"unload --table s.t --output x.txt --no-header {ESCAPE} {MOMENTS} {WORDS} "
            "--encoding cp1252",
        ),
        (  # what COPY reads back: escapes as it takes them, one file, empty options
            "COPY s.t TO 'x' WITH ESCAPE = '/' AND DATETIMEFORMAT = '%Y-%m-%d' AND BEGINTOKEN = '' "
            "AND MAXOUTPUTSIZE = -1",
            f"unload --table s.t --output x --no-header {WORDS} --escape / "
            "--timestamp-format %Y-%m-%d --single-file",
        ),
        (
            "COPY s.t TO STDOUT WITH NULL = '\\N'",
            f"unload --table s.t --output - --no-header {ESCAPE} {MOMENTS} {WORDS} --null '\\N'",
        ),
        (
            "COPY s.t TO 'x.csv' WITH MAXOUTPUTSIZE = 100",
            f"unload --table s.t --output x.csv/ --no-header {ESCAPE} {MOMENTS} {WORDS} "
            "--max-rows-per-file 100",
        ),
        (  # names with quotes and blanks around the dot
            """COPY "Ks" . "T" ("A", b) FROM 'x.json' WITH HEADER = yes AND SKIPCOLS = '' """
            "AND TTL = -1 AND CONFIGFILE = '' AND DECIMALSEP = ''",
            "load x.json --table Ks.T --columns A,b --escape '\\' --null-quoted "
            "--nulls tombstone --no-header "
            "--format csv",
        ),
        (
            "COPY \"Ks\".t FROM 'x.csv' WITH NULL = '\\N'",
            "load x.csv --table Ks.t --no-header --escape '\\' --null-quoted "
            "--nulls tombstone --null '\\N' "
            "--null '\\\\N'",
        ),
        (
            'cqlsh -t -ujoe -pblow --user joe --disable-history -e "PAGING OFF; USE Shop; '
            "COPY orders FROM 'x.csv'\" db1",
            "load x.csv --table shop.orders --user joe --password --contact-points db1 --no-header "
            "--escape '\\' --null-quoted --nulls tombstone",
        ),
        (
            """dsbulk unload -query "SELECT toJson(m), (int)42 AS n FROM s.t LIMIT 5" -url out""",
            "unload --output out --escape '\\' --escape-style quoted --blob base64 "
            "--query 'SELECT toJson(m), (int)42 AS n FROM s.t LIMIT 5' --true-words 1 "
            "--false-words 0",
        ),
        (
            "dsbulk unload -k s -t t -m 'a=a, day=toDate(at), n=now()' -url out",
            "unload --table s.t --output out --escape '\\' --escape-style quoted --blob base64 "
            "--mapping 'a=a, day=toDate(at), n=now()' --true-words 1 --false-words 0",
        ),
        (
            "dsbulk count -query 'SELECT * FROM s.\"T\" WHERE token(a) > :b AND token(a) <= :e'",
            "count --table s.T",
        ),
        (
            "dsbulk count -k s -query 'SELECT a FROM t WHERE c > 5 ALLOW FILTERING;'",
            "count --table s.t --where 'c > 5'",
        ),
        (
            "dsbulk COUNT -k s -t t -stats Partitions,hosts -partitions 5",
            "count --table s.t --by host",
        ),
        ("dsbulk count -k s -t t -partitions 5 -header false -m a=b", "count --table s.t"),
        ("dsbulk count -k s -t t -stats hosts", "count --table s.t --by host"),
        ("dsbulk count -k s -t t -stats partitions -partitions 5", "count --table s.t --top 5"),
        (
            "dsbulk count -query 'SELECT * FROM s.t WHERE token(a, b) > 5 AND token(a, b) <= 9'",
            "count --table s.t --where 'token(a, b) > 5 AND token(a, b) <= 9'",
        ),
        (
            "dsbulk count -query 'SELECT a FROM s.t WHERE token(a) > ? AND token(a) <= ?'",
            "count --table s.t",
        ),
        (
            "dsbulk load -query 'UPDATE s.t USING TIMESTAMP ? AND TTL ? SET a = ? WHERE b = ?' "
            "-url x.csv -m 'a=a, b=b, c=__timestamp, d=__ttl'",
            "exec 'UPDATE s.t USING TIMESTAMP ? AND TTL ? SET a = ? WHERE b = ?' --params x.csv "
            f"{_VALUES} --values-mapping "
            '\'a=a, b=b, c="[timestamp]", d="[ttl]"\'',
        ),
        (
            "dsbulk load -query 'INSERT INTO s.t (a) VALUES (:a)' -url x.csv -b shop.zip",
            "exec 'INSERT INTO s.t (a) VALUES (:a)' --params x.csv "
            f"{_VALUES} --secure-connect-bundle shop.zip",
        ),
        (
            r"dsbulk load -k s -t t -url x.csv -newline '\n' -nullStrings 'a,b' -nullValue a",
            rf"load x.csv --table s.t {_LOAD} --line-end lf --null a --null b --null '' "
            "--null-quoted --fill-quoted ''",
        ),
        (
            "dsbulk load -c json -k s -t t -url x.json -nullStrings '\"\",N/A'",
            "load x.json --table s.t --format jsonl --json-layout documents --allow-extra-fields "
            "--blob any --accept all --null '' --null N/A --null-quoted",
        ),
        (
            "dsbulk unload -c json -k s -t t -url out --connector.json.prettyPrint true "
            "--connector.json.mode SINGLE_DOCUMENT",
            "unload --table s.t --output out --format jsonl --blob base64 "
            "--file-name-format output-%06d.json --json-layout pretty",
        ),
    ],
)
def test_lines(text: str, line: str) -> None:
    translation = one(text)
    assert translation.line == f"ringhaul {line}"
    accept(translation)


@each(
    ("text", "line"),
    [
        ("LOAD -url x.csv", f"load x.csv --table s.t {_LOAD}"),
        ("load -c CSV -url file:/in/x%20y.csv", f"load '/in/x y.csv' --table s.t {_LOAD}"),
        ("load -url file:///in/x.csv", f"load /in/x.csv --table s.t {_LOAD}"),
        ("load -url .", f"load './*.csv' --table s.t {_LOAD}"),
        ("load -url in.d/", f"load 'in.d/*.csv' --table s.t {_LOAD}"),
        ("load -url /", f"load '/*.csv' --table s.t {_LOAD}"),
        ("load -url https://h/data", f"load https://h/data --table s.t {_LOAD}"),
        ("load -url 's3://b/x.csv?region=r'", f"load s3://b/x.csv --table s.t {_LOAD}"),
        (
            "load -url d --connector.csv.fileNamePattern '**/*.{csv,txt}'",
            f"load 'd/*.csv' 'd/*.txt' --table s.t {_LOAD}",
        ),
        (
            "load -url d --connector.csv.compression gzip",
            f"load 'd/*.csv.gz' --table s.t {_LOAD}",
        ),
        (r"load -url x.csv -escape '\\'", f"load x.csv --table s.t {_LOAD}"),
        (
            r"load -url x.csv -escape '\u0000' -comment '\u0000'",
            "load x.csv --table s.t --blob any --accept all --thousands-sep ,",
        ),
        (
            r"load -url x.csv -quote '\u0000'",
            "load x.csv --table s.t --blob any --accept all --thousands-sep , --quote ''",
        ),
        (
            r"load -url x.csv -quote '\"' -delim '\u0001'",
            rf"""load x.csv --table s.t {_LOAD} --quote '"' --delimiter '\x01'""",
        ),
        (
            "load -url x.csv -m '\n a=b,\n \\\"c d\\\" = e'",
            f"load x.csv --table s.t {_LOAD} --mapping 'a=b, \"c d\" = e'",
        ),
        ("load -url x.csv -nullStrings []", f"load x.csv --table s.t {_LOAD}"),
        (
            "load -url x.csv -nullStrings '\"\",NULL'",
            f"load x.csv --table s.t {_LOAD} --null '' --null NULL --null-quoted",
        ),
        (
            "load -url x.csv -timeZone UTC+02:00",
            f"load x.csv --table s.t {_LOAD} --timezone Etc/GMT-2",
        ),
        ("load -url x.csv -timeZone -3", f"load x.csv --table s.t {_LOAD} --timezone Etc/GMT+3"),
        (
            "load -url x.csv --codec.date BASIC_ISO_DATE "
            "--codec.epoch 2000-01-01T00:00:00+01:00[Europe/Paris]",
            f"load x.csv --table s.t {_LOAD} "
            "--epoch 2000-01-01T00:00:00+01:00 --date-format yyyyMMdd",
        ),
        (
            "load -c JSON -url x.json",
            "load x.json --table s.t --format jsonl --json-layout documents --allow-extra-fields "
            "--blob any --accept all",
        ),
        (
            "load -c json -url x.json --connector.json.parserFeatures '{ALLOW_COMMENTS:false}'",
            "load x.json --table s.t --format jsonl --json-layout documents --allow-extra-fields "
            "--blob any --accept all",
        ),
        (
            "load -query 'INSERT INTO t (a) VALUES (?)' -url x.csv",
            "exec 'INSERT INTO s.t (a) VALUES (?)' --params x.csv --values-escape '\\' "
            "--values-escape-style quoted --values-blob any "
            "--values-accept all --values-thousands-sep ,",
        ),
        ("load -url x.csv --executor.maxPerSecond -5", f"load x.csv --table s.t {_LOAD}"),
        (
            "unload -url out --schema.allowExtraFields true --batch.maxBatchStatements 9",
            "unload --table s.t --output out --escape '\\' --escape-style quoted --blob base64 "
            "--true-words 1 --false-words 0",
        ),
        (
            "unload -url file:/out -query 'SELECT a FROM t'",
            "unload --output /out --escape '\\' --escape-style quoted --blob base64 "
            "--query 'SELECT a FROM s.t' --true-words 1 "
            "--false-words 0",
        ),
        (
            "unload -c json -url out",
            "unload --table s.t --output out --format jsonl --blob base64 "
            "--file-name-format output-%06d.json",
        ),
        (
            "unload -c json -url out -maxConcurrentFiles 1",
            "unload --table s.t --output out/ --format jsonl --blob base64 "
            "--file-name-format output-%06d.json --single-file",
        ),
        (
            "unload -c json -url - -maxConcurrentFiles 1 -maxRecords 9",
            "unload --table s.t --output - --format jsonl --blob base64",
        ),
        (
            "unload -c json -url out -maxConcurrentFiles 1 "
            "--connector.json.fileNameFormat x-%d.json",
            "unload --table s.t --output out/ --format jsonl --blob base64 "
            "--file-name-format x-%d.json --single-file",
        ),
        (
            "load -url x.csv -nullValue auto --connector.csv.emptyValue Auto",
            f"load x.csv --table s.t {_LOAD}",
        ),
        (
            "load -url x.csv --executor.maxBytesPerSecond '5 mebibytes'",
            f"load x.csv --table s.t {_LOAD} --rate 5243kB/s",
        ),
        (
            "load -url x.csv -locale es",
            f"load x.csv --table s.t {_OTHER_NUMBERS} "
            "--locale es --decimal-sep , --thousands-sep .",
        ),
        (
            "unload -c json -url out -locale fr_FR",
            "unload --table s.t --output out --format jsonl --blob base64 "
            "--file-name-format output-%06d.json --locale fr",
        ),
        (
            "load --connector.csv.url:x.csv --dsbulk.connector.csv.header:false",
            r"load x.csv --table s.t --escape '\' --escape-style quoted --allow-extra-fields "
            "--blob any --accept all --thousands-sep , --no-header",
        ),
        (  # a record longer than the header is a reject in both
            "load -url x.csv --schema.allowExtraFields true",
            f"load x.csv --table s.t {_LOAD}",
        ),
        (
            """load -url x.csv -nullStrings 'NULL,""' -nullValue NULL""",
            f"load x.csv --table s.t {_LOAD} --null NULL --null '' --null-quoted",
        ),
    ],
)
def test_spellings(text: str, line: str) -> None:
    operation, _, rest = text.partition(" ")
    translation = one(f"dsbulk {operation} -k s -t t {rest}")
    assert translation.line == f"ringhaul {line}"
    accept(translation)


def test_a_home_folder_in_quotes_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/joe")
    assert one("dsbulk load -k s -t t -url '~/x.csv'").words[1] == "/home/joe/x.csv"
    assert one("dsbulk unload -k s -t t -url ~/out").line.count("--output /home/joe/out") == 1


@each(
    ("text", "note"),
    [
        ("load -url export", "if it is a file, give export in place of the pattern"),
        ("load -url x.csv -m 'a=a, w=__timestamp'", "is microseconds; there milliseconds"),
        ("load -url x.csv -stats hosts", "dsbulk load does not use it"),
        ("unload -url out --connector.csv.urlfile x", "dsbulk unload does not use it"),
        ("unload -url out --codec.booleanNumbers 1,0", "as the words of codec.booleanStrings"),
        ("load -url x.csv --engine.executionId 'a_%2$s'", "there are no templates"),
        ("load -url x.csv -deny h1", "cluster.denied_nodes"),
        ("load -url x.csv -prometheus true", "ringhaul metrics"),
        (
            "count --executor.maxBytesPerSecond 5MB --executor.maxPerSecond 10",
            "in place of the bytes",
        ),
        ("count -stats all", "run it again with --by or --top N"),
        ("load -url '$DIR/x.csv'", "the shell fills in no variables within single quotes"),
        ("load --connector.csv.urlfile x", "a folder in it stands for all files in it"),
        ("unload -url out -dryRun --executor.maxPerSecond 5", "it reads nothing"),
        ("unload -c json -url out -nullStrings NULL", "is written as null of JSON"),
        ("unload -c json -url out --connector.json.prettyPrint true", "each object is on one line"),
    ],
)
def test_notes(text: str, note: str) -> None:
    operation, _, rest = text.partition(" ")
    translation = one(f"dsbulk {operation} -k s -t t {rest}")
    accept(translation)
    assert translation.complete
    assert any(note in one.text for one in translation.notes)


@each(
    ("text", "size"),
    [
        *[("5", 5), ("-1", -1), ("1.5KB", 1500), ("2k", 2048), ("1 Mi", 2**20), ("3GB", 3 * 10**9)],
        *[
            ("5 kibibytes", 5120),
            ("2 megabytes", 2 * 10**6),
            ('"7B"', 7),
            ("x", None),
            ("5 qb", None),
        ],
    ],
)
def test_sizes_in_bytes(text: str, size: int | None) -> None:
    assert as_bytes(text) == size


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("INSERT INTO t (a) VALUES (?)", "INSERT INTO K.t (a) VALUES (?)"),
        ('update "T" set a = :a where b = :b', 'update K."T" set a = :a where b = :b'),
        ("DELETE a FROM t WHERE b = ?", "DELETE a FROM K.t WHERE b = ?"),
        ("SELECT a FROM t", "SELECT a FROM K.t"),
        ("INSERT INTO x.t (a) VALUES (?)", None),
        ('UPDATE "x" . "t" SET a = ?', None),
        (
            "BEGIN UNLOGGED BATCH INSERT INTO t (a) VALUES ('UPDATE t'); UPDATE \"T\" SET a = ?; "
            "INSERT INTO x.t (a) VALUES (?); DELETE FROM t WHERE a = ?; APPLY BATCH",
            "BEGIN UNLOGGED BATCH INSERT INTO K.t (a) VALUES ('UPDATE t'); "
            'UPDATE K."T" SET a = ?; '
            "INSERT INTO x.t (a) VALUES (?); DELETE FROM K.t WHERE a = ?; APPLY BATCH",
        ),
    ],
)
def test_a_statement_gets_the_keyspace_of_the_option(query: str, found: str | None) -> None:
    expected = query if found is None else found
    assert qualified(query, "ks") == expected.replace("K.", "ks.")
    assert qualified(query, "My Ks") == expected.replace("K.", '"My Ks".')
    assert qualified(query, "") == query


@pytest.mark.parametrize(
    ("query", "mapping", "numbered", "found"),
    [
        ("SELECT a, b FROM t", "x = a, y = b", False, "SELECT a AS x, b AS y FROM t"),
        ("SELECT a, b FROM t", "b, a", False, "SELECT b, a FROM t"),
        (
            "select a, B as c from t where a = 'x, y'",
            '"C D" = c',
            False,
            "SELECT B AS \"C D\" from t where a = 'x, y'",
        ),
        (
            'SELECT "Q", writetime( "Q" ) FROM t',
            'q = Q, w = "writetime(Q)"',
            False,
            'SELECT "Q" AS q, writetime( "Q" ) AS w FROM t',
        ),
        (
            "SELECT f(a, b), c FROM t",
            '1 = c, 10 = c, 0 = "f(a,b)"',
            True,
            "SELECT f(a, b), c, c FROM t",
        ),
        ("SELECT a FROM t", "* = *", False, None),
        ("SELECT a FROM t", "x = b", False, None),
        ("SELECT a FROM t", "x = ", False, None),
        ("SELECT * FROM t", "x = a", False, None),
    ],
)
def test_a_select_gets_the_names_of_a_mapping(
    query: str, mapping: str, numbered: bool, found: str | None
) -> None:
    assert renamed(query, mapping, numbered=numbered) == found


def test_a_select_that_a_mapping_does_not_fit_is_incomplete() -> None:
    found = one("dsbulk unload -query 'SELECT * FROM s.t' -m 'x = a' -url out")
    assert "--mapping" not in found.words and not found.complete
    assert "SELECT column AS field" in found.notes[-1].text


def test_what_exec_does_not_have_is_explained() -> None:
    statement = "-query 'INSERT INTO s.t (a) VALUES (:a)'"
    for given, why in {
        "-url x.csv -dryRun": "would run its statement",
        "--connector.csv.urlfile x": "exec reads one file",
        "-url x.csv --schema.queryTtl 5": "its statement says what is written",
    }.items():
        found = one(f"dsbulk load {statement} {given}")
        assert [why in note.text for note in found.notes if note.lost] == [True], given


@pytest.mark.parametrize("query", ["-t t", "-query 'DELETE FROM s.t WHERE id=?'"])
def test_snappy_is_not_read(query: str) -> None:
    notes = one(f"dsbulk load -url d -k s {query} --connector.csv.compression snappy").notes
    (lost,) = [note.text for note in notes if note.lost]
    assert lost == "snappy is not read: unpack the files first (snzip -d)"


def test_compression_of_requests() -> None:
    name = "datastax-java-driver.advanced.protocol.compression"
    (note,) = one(f"dsbulk count -k s -t t --{name} lz4").notes
    assert note.text == "a setting of each host: cluster.compression, none or lz4"


#: Values of options that do not take any word; what is not here is tried with 1.
COPY_VALUES = {
    "DELIMITER": ";",
    "QUOTE": "|",
    "ESCAPE": "/",
    "ENCODING": "latin1",
    "DATETIMEFORMAT": "%Y-%m-%d",
    "DECIMALSEP": ",",
    "THOUSANDSSEP": " ",
    "BOOLSTYLE": "y,n",
    "HEADER": "true",
}
VALUES = {
    "connector.name": "csv",
    "connector.*.header": "false",
    "connector.*.delimiter": ";",
    "connector.*.quote": "|",
    "connector.*.escape": "/",
    "connector.*.comment": "#",
    "connector.*.encoding": "utf-8",
    "connector.*.compression": "gzip",
    "codec.timeZone": "Europe/Paris",
    "codec.locale": "fr_FR",
    "codec.date": "dd.MM.yyyy",
    "codec.time": "HH:mm",
    "codec.timestamp": "dd.MM.yyyy HH:mm",
    "codec.unit": "DAYS",
    "codec.epoch": "2000-01-01T00:00:00Z",
    "codec.booleanStrings": "y:n",
    "codec.booleanNumbers": "1,0",
    "codec.binary": "HEX",
    "codec.overflowStrategy": "TRUNCATE",
    "codec.roundingStrategy": "DOWN",
    "schema.mapping": "a=b",
    "schema.query": "SELECT a FROM s.t",
    "batch.mode": "DISABLED",
    "datastax-java-driver.basic.request.consistency": "ONE",
    "connector.*.ignoreLeadingWhitespaces": "true",
    "schema.nullToUnset": "false",
    "schema.preserveTimestamp": "true",
    "schema.preserveTtl": "true",
    "engine.dryRun": "true",
    "stats.modes": "ranges",
    "connector.*.fileNameFormat": "output-%06d.csv",
    "connector.*.parserFeatures": "ALLOW_COMMENTS:true",
}


@pytest.mark.parametrize("direction", COPY_OPTIONS)
def test_every_option_of_copy_gives_a_command_that_is_accepted_or_is_explained(
    direction: str,
) -> None:
    bare = one(f"COPY s.t {direction} 'x'")
    for name in COPY_OPTIONS[direction]:
        value = COPY_VALUES.get(name, "1")
        translation = one(f"COPY s.t {direction} 'x' WITH {name} = '{value}'")
        accept(translation)
        explained = any(note.option == name for note in translation.notes)
        assert translation.words != bare.words or explained, name


@pytest.mark.parametrize("command", HANDLERS)
def test_every_setting_of_bulk_loader_gives_a_command_that_is_accepted_or_is_explained(
    command: str,
) -> None:
    base = f"dsbulk {command}" + (" -k s -t t" if command == "count" else " -k s -t t -url x.csv")
    bare = one(base)
    unchanged = []
    for name in HANDLERS[command]:
        if (command, name) == ("load", "schema.query"):
            continue  # exec, which has separate tests
        setting = name.replace("*", "csv")
        translation = one(f"{base} --{setting} {shlex.quote(VALUES.get(name, '1'))}")
        accept(translation)
        explained = any(note.option == f"--{setting}" for note in translation.notes)
        if translation.words == bare.words and not explained:
            unchanged.append(name)
    # What is said by default, or together with another setting.
    usual = {
        *("connector.name", "connector.*.fileNamePattern", "connector.*.recursive"),
        *("schema.keyspace", "schema.table", "engine.dryRun", "runner.promptForPasswords"),
        *("schema.preserveTimestamp", "schema.preserveTtl", "connector.*.prettyPrint"),
        *("schema.allowMissingFields", "connector.*.ignoreTrailingWhitespaces"),
        *("connector.*.ignoreLeadingWhitespacesInQuotes",),
        *("connector.*.ignoreTrailingWhitespacesInQuotes",),
        *("connector.*.serializationStrategy", "connector.*.mode", "schema.nullToUnset"),
        *("connector.*.encoding", "connector.*.url", "codec.binary", "stats.numPartitions"),
        "schema.query",  # of a count, which then has the same table
    }
    assert set(unchanged) <= usual


def test_every_shortcut_of_bulk_loader_is_a_known_setting() -> None:
    known = {name for handlers in HANDLERS.values() for name in handlers}
    for setting in SHORTCUTS.values():
        name = setting.replace("connector.csv.", "connector.*.")
        file = name == "config"  # its settings are read in its place
        assert file or name in known or name.startswith(("log.", "monitoring.")), setting


@each(
    ("text", "message"),
    [
        ("", "no COPY statement, and no command of dsbulk or cqlsh"),
        ("SELECT * FROM t", "SELECT: only COPY, USE and CONSISTENCY, and commands of dsbulk, are"),
        ("COPY s.t FROM 'x' WITH SPEED = 1", "COPY FROM has no option SPEED"),
        ("COPY s.t TO 'x' WITH INGESTRATE = 1", "COPY TO has no option INGESTRATE"),
        ("COPY s.t FROM", "a file in quotes or STDIN is missing"),
        ("COPY s.t FROM 'x", "a quote is not closed: 'x"),
        ("COPY s.t 'x'", "FROM or TO is missing before 'x'"),
        ("COPY s.t FROM 'x' WITH TTL", "TTL has no '='"),
        ("COPY s.t FROM 'x' WITH TTL =", "TTL has no value"),
        ("COPY s.t FROM 'x' SOON", "'SOON' follows the statement"),
        ("COPY s.t FROM 'x' WITH BOOLSTYLE = 'yes'", "two words with a comma between"),
        ("COPY s.t FROM 'x' WITH BOOLSTYLE = 'yes,yes'", "two words with a comma between"),
        ("COPY s.t FROM 'x' WITH BOOLSTYLE = 'y,n,m'", "two words with a comma between"),
        ("COPY $KS.t FROM 'x'", "; variables of a shell are not known here"),
        ("cqlsh -e \"COPY s.t FROM 'x'\" > log 2>&1", "> is for the shell"),
        ("cqlsh -e \"COPY s.t FROM 'x'\" && echo", "&& is for the shell"),
        ("cqlsh -e \"COPY s.t FROM 'x'\" h1 9042 h2", "'h2' follows host and port"),
        ("cqlsh -f load.cql", "give the statements of load.cql: translate - < load.cql"),
        ("cqlsh -e 'TRUNCATE s.t'", "TRUNCATE: only COPY, USE and CONSISTENCY"),
        ("dsbulk", "load, unload or count is missing"),
        ("dsbulk sweep -k s", "only load, unload and count"),
        ("dsbulk load -k s -t t -url", "-url has no value"),
        ("dsbulk load -sideways 1", "it has no option -sideways"),
        ("dsbulk load --codec.colour red", "it has no setting --codec.colour"),
        ("dsbulk load x.csv", "'x.csv' is not an option"),
        ("dsbulk unload -k s -t t | gzip", "| belongs to the shell: give the command of dsbulk"),
        ("dsbulk unload -k s -t t > x.csv", "> belongs to the shell"),
        ("dsbulk count -query 'SELECT a FROM s.t LIMIT 5'", "this SELECT cannot be counted"),
        (
            "dsbulk load -c json -k s -t t -url x --connector.json.quote '|'",
            "it has no setting --connector.json.quote: JSON has no such thing",
        ),
        ("dsbulk load -c xml", "connector 'xml' is neither csv nor json"),
        ("dsbulk load --codec.unit WEEKS", "'WEEKS' is not a unit of time"),
        ("dsbulk load -k 's", "No closing quotation"),
        ("COPY s.t FROM 'x' WITH headr = true", "has no option HEADR; did you mean HEADER"),
        ("dsbulk load -delm ;", "it has no option -delm; did you mean -delim"),
        (
            "dsbulk load --connector.csv.delimeter ;",
            "no setting --connector.csv.delimeter; did you mean --connector.csv.delimiter",
        ),
        ("cqlsh db1", '-e "COPY ..." is missing'),
        ("cqlsh --fast -e 'COPY s.t FROM STDIN'", "cqlsh has no option --fast"),
    ],
)
def test_what_cannot_be_translated_says_why(text: str, message: str) -> None:
    with pytest.raises(NotTranslatable, match=message.replace("(", r"\(").replace("*", r"\*")):
        translate(text)


def test_what_is_lost_makes_a_translation_incomplete() -> None:
    assert one("dsbulk load -k s -t t -url x.csv -maxConcurrentFiles 3").complete
    assert not one("dsbulk load -k s -t t -url x.csv --codec.geo WKB").complete
    assert not one("COPY t FROM 'x'").complete, "no keyspace"
    assert one("COPY s.t FROM 'x' WITH CHUNKSIZE=5").complete
    assert not one("COPY s.t TO 'x' WITH FLOATPRECISION=5").complete


@pytest.mark.parametrize(
    ("text", "words", "lost"),
    [
        ("FROM 'x' WITH HEADER = 1", "COPY takes '1' for false", False),
        ("FROM 'x' WITH SKIPCOLS = a", "needs a list of all its columns: add --columns", True),
        ("FROM 'x' WITH CONFIGFILE = f", "its options yield to those of this command", True),
        ("FROM 'x' WITH THOUSANDSSEP = '.'", "in collections, tuples and user types", False),
        ("TO 'x.json'", "would not be CSV: give it a name such as x.json.csv", True),
        ("TO 'x.csv'", "user types are JSON, which COPY FROM does not read", False),
        ("(a, \"b,c\") FROM 'x'", "cannot name 'b,c', which has a comma", True),
    ],
)
def test_what_copy_does_otherwise_is_explained(text: str, words: str, lost: bool) -> None:
    notes = [note for note in one(f"COPY s.t {text}").notes if words in note.text]
    assert [note.lost for note in notes] == [lost]


def test_no_columns_need_a_list_beside_a_header_or_their_names() -> None:
    for text in ("(a, b) FROM 'x' WITH SKIPCOLS = a", "FROM 'x' WITH SKIPCOLS=a AND HEADER=true"):
        assert one(f"COPY s.t {text}").complete


def test_a_file_in_a_users_home_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/joe")
    found = one("COPY s.t FROM '~/a.csv, ~/b.csv'")
    assert found.words[1:3] == ("/home/joe/a.csv", "/home/joe/b.csv")
    assert "~ is the home of the present user: /home/joe/a.csv" in found.notes[0].text


def test_settings_of_the_driver_are_explained_by_each_of_their_names() -> None:
    base = "dsbulk load -k s -t t -url x.csv"
    for text, words in {
        "--driver.basic.load-balancing-policy.filter.deny h3": "cluster.denied_nodes",
        "--driver.policy.lbp.whiteList.hosts h1": "cluster.allowed_nodes",
        "--driver.protocol.compression LZ4": "cluster.compression",
        "-maxRetries 3": "load.retries_max",
        '--driver.basic.contact-points \'["h1:1", "h2:2"]\'': "all nodes listen on one port",
    }.items():
        translation = one(f"{base} {text}")
        assert any(words in note.text for note in translation.notes), text
    for text in ("-g g -v person", "-e knows -from person -to person"):
        translation = one(f"{base} {text}")
        assert not translation.complete
        assert {note.text for note in translation.notes if note.lost} == {"graphs cannot be moved"}


def test_passwords_are_left_out() -> None:
    for text in (
        "dsbulk load -k s -t t -url x.csv -u joe -p hunter2",
        "cqlsh -u joe -p hunter2 -e \"COPY s.t FROM 'x'\"",
    ):
        translation = one(text)
        assert "--password" in translation.words
        assert "hunter2" not in translation.line + str(translation.notes)
        accept(translation)


def test_a_script_is_translated_in_its_order() -> None:
    script = """
    # nightly
    dsbulk load -k s -t t -url a.csv
    COPY s.t FROM 'b.csv'; COPY s.t FROM 'c.csv';
    cqlsh -e "COPY s.t FROM 'd.csv'"
    """
    assert [one.words[1] for one in translate(script)] == ["a.csv", "b.csv", "c.csv", "d.csv"]


@pytest.mark.parametrize(
    "before", ["time ", "sudo nohup /opt/dsbulk/bin/", """A=1 JAVA_OPTS="-Xmx4g -Xms1g" B='x y' """]
)
def test_what_precedes_a_program_is_left_out(before: str) -> None:
    assert one(f"  {before}dsbulk count -k s -t t").line == "ringhaul count --table s.t"


def test_a_query_says_itself_which_times_are_unloaded() -> None:
    line = 'dsbulk unload -query "SELECT a FROM s.t" -timestamp true -ttl true -url out'
    (found,) = translate(line)
    accept(found)
    assert found.line == (
        "ringhaul unload --output out --escape '\\' --escape-style quoted --blob base64 "
        "--query 'SELECT a FROM s.t' --true-words 1 "
        "--false-words 0"
    )
    assert [(note.option, note.lost) for note in found.notes] == [
        ("-timestamp", True),
        ("-ttl", True),
    ]


def run(*words: str) -> int:
    code: int = translate_command.main(list(words), "ringhaul translate", standalone_mode=False)
    return code


@pytest.mark.parametrize("escape", ["\\", "/"])
def test_an_unload_is_read_back_with_its_own_escapes(escape: str) -> None:
    given = f"-k s -t t -url d --connector.csv.escape '{escape}'"
    for command in ("unload", "load"):
        found = one(f"dsbulk {command} {given}")
        accept(found)
        assert f"--escape {shlex.quote(escape)} --escape-style quoted" in found.line
        assert not any("escape" in note.option for note in found.notes)


def test_a_condition_on_token_ranges_is_left_out_with_a_note() -> None:
    condition = "token(a) > :start AND token(a) <= :end"
    (found,) = translate(f'dsbulk unload -url out -query "SELECT a FROM s.t WHERE {condition}"')
    assert "without the condition on token ranges" in next(note.text for note in found.notes)
    assert found.complete
    # A range that the user chose stays
    chosen = "SELECT a FROM s.t WHERE token(a) > 5 AND token(a) <= 9"
    (found,) = translate(f'dsbulk unload -url out -query "{chosen}"')
    assert chosen in found.line
    assert not any("token" in note.text for note in found.notes)


@pytest.mark.parametrize(
    "piece", ["WHERE ", "AND  ", "WHERE token(", "AND token(a) ", " ", "(", "FROM ", "FROM  a"]
)
def test_a_long_query_takes_linear_time(piece: str) -> None:
    query = (piece * 30_000)[:30_000]
    began_s = time.process_time()
    translate(f"dsbulk unload -url out -query '{query}'")
    for start in ("", "SELECT ", "SELECT a FROM t WHERE "):
        with contextlib.suppress(NotTranslatable):
            translate(f"dsbulk count -k s -query '{start}{query} ;b'")
    assert time.process_time() - began_s < 2


def test_words_of_a_shell_are_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dsbulk", "load", "-h", "h1, h2", "-url", "a b.csv", "-k", "s", "-t", "t", "-header"]
    assert run(*words, "false") == 0
    apart = capsys.readouterr().out
    assert run("dsbulk load -h 'h1, h2' -url 'a b.csv' -k s -t t -header false") == 0
    assert capsys.readouterr().out == apart
    assert "load 'a b.csv' --table s.t" in apart and "--no-header" in apart
    assert "--contact-points h1,h2" in apart
    statement = "COPY s.t FROM 'a b.csv'"
    assert run("cqlsh", "h1", "-e", statement, "--json") == 0
    assert json.loads(capsys.readouterr().out)["command"][:3] == ["ringhaul", "load", "a b.csv"]


def test_a_copy_whose_quotes_the_shell_removed_is_refused() -> None:
    with pytest.raises(UsageError, match="give the COPY statement in double quotes"):
        run(*["COPY", "s.t", "FROM", "a.csv", "WITH", "HEADER=true"])


def test_a_command_longer_than_a_shell_takes_is_refused() -> None:
    with pytest.raises(NotTranslatable, match="a command of 40,023 characters: at most 32,767"):
        translate("dsbulk load -k s -t t -" + 40_000 * "h")


@each("piece", ["'", '"', "a,", "\\", "COPY ", "-- ", "/*", "(", "dsbulk '\n", 'a="" ', "{a,b}"])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        started = time.process_time()
        for start in ("COPY s.t FROM ", "dsbulk load -k ", ""):
            with contextlib.suppress(NotTranslatable):
                translate(start + text)
        return time.process_time() - started

    seconds(1000)
    # The shortest of several times: the collector may look through all of pytest's objects
    short = min(seconds(8_000) for _ in range(4))
    long = min(seconds(32_000) for _ in range(4))
    # Four times as long: 16 times would be quadratic, and a busy machine made it 9
    assert long < 12 * max(short, 0.01)
