"""Batches go through functions: every record is returned, dropped, or an error."""

from __future__ import annotations

import datetime
import signal
import sys
import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from producer.tune.deadline import TimeOver, until
from ringhaul.transform import RECORD, each_row
from ringhaul.transform.chain import FIRST_RECORDS, SLICE_ROWS, Transform, declared_columns
from ringhaul.transform.errors import TransformError, reason_of
from tests.unit.transform.functions import batch_of, chain_of, raising_on, rows_of


def test_rows_of_a_result_belong_to_the_records_at_the_same_position() -> None:
    def louder(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"a": pc.utf8_upper(batch.column("a"))})

    rows, errors = rows_of(chain_of(louder), batch_of(a=["x", None, "z"]))

    assert rows == [(0, {"a": "X"}), (1, {"a": None}), (2, {"a": "Z"})]
    assert errors == {}


def test_the_record_column_follows_filter_and_take() -> None:
    def odd_ones_twice(batch: pa.RecordBatch) -> pa.RecordBatch:
        odd = batch.filter(pc.equal(pc.bit_wise_and(batch.column("n"), 1), 1))
        return odd.take(pa.array([i for i in range(odd.num_rows) for _ in "ab"], pa.int64()))

    rows, _ = rows_of(chain_of(odd_ones_twice), batch_of(n=list(range(200))))

    assert rows == [(n, {"n": n}) for n in range(1, 200, 2) for _ in "ab"]


def test_functions_run_in_order_and_records_are_tracked_through_all() -> None:
    def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.take(pa.array([i // 2 for i in range(2 * batch.num_rows)], pa.int64()))

    def numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
        # The second of each record's two rows is dropped.
        assert batch.schema.names == ["n", RECORD]
        kept = batch.filter(pa.array([i % 2 == 0 for i in range(batch.num_rows)]))
        return kept.append_column("k", pa.array(range(kept.num_rows)))

    rows, _ = rows_of(chain_of(twice, numbered), batch_of(n=[7, 8, 9]))

    assert rows == [(0, {"n": 7, "k": 0}), (1, {"n": 8, "k": 1}), (2, {"n": 9, "k": 2})]


def test_records_on_which_a_function_raises_are_found_and_the_others_continue() -> None:
    calls = 0

    def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal calls
        calls += 1
        return raising_on("n", 3, 44, 45)(batch)

    rows, errors = rows_of(chain_of(counted), batch_of(n=list(range(FIRST_RECORDS))))

    assert [record for record, _ in rows] == [
        n for n in range(FIRST_RECORDS) if n not in (3, 44, 45)
    ]
    assert errors == {n: f"t:0: ValueError: {n} it is" for n in (3, 44, 45)}
    # Halving 64 records: at most 2 * 6 calls for each, besides the whole batch.
    assert calls <= 1 + 3 * 2 * 6


def test_a_function_is_not_called_without_rows() -> None:
    def none_of_these(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.greater(batch.column("n"), 64))

    def first_of_these(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.column("n")[0].as_py() > 0  # no batch without rows
        return batch

    rows, errors = rows_of(chain_of(none_of_these, first_of_these), batch_of(n=list(range(70))))
    assert ([record for record, _ in rows], errors) == ([65, 66, 67, 68, 69], {})
    dropping = each_row(lambda row: None)
    assert rows_of(chain_of(dropping, first_of_these), batch_of(n=[1, 2])) == ([], {})


def test_a_failure_in_the_second_function_names_the_input_record() -> None:
    def backwards(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))

    rows, errors = rows_of(chain_of(backwards, raising_on("n", 2)), batch_of(n=[0, 1, 2, 3]))

    assert [record for record, _ in rows] == [3, 1, 0]
    assert errors == {2: "t:1: ValueError: 2 it is"}


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), MemoryError("much"), GeneratorExit(), RecursionError(), BaseException("b")],
)
def test_any_exception_of_a_function_fails_only_its_record(error: BaseException) -> None:
    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        if "x" in batch.column("a").to_pylist():
            raise error
        return batch

    rows, errors = rows_of(chain_of(run), batch_of(a=["u", "x", "w"]))

    assert [record for record, _ in rows] == [0, 2]
    assert list(errors) == [1] and type(error).__name__ in errors[1]


def test_an_exit_is_an_error_of_its_record() -> None:
    def leave(batch: pa.RecordBatch) -> pa.RecordBatch:
        sys.exit("enough")

    assert rows_of(chain_of(leave), batch_of(a=[1]))[1] == {0: "t:0: SystemExit: enough"}


def test_ctrl_c_from_the_keyboard_is_not_an_error_of_the_function() -> None:
    def interrupted(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows_of(chain_of(interrupted), batch_of(a=[1]))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a worker's processes
    try:
        assert rows_of(chain_of(interrupted), batch_of(a=[1]))[1] == {0: "t:0: KeyboardInterrupt"}
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_alarm_of_a_command_is_not_an_error_of_the_function() -> None:
    def hangs(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(60)
        return batch

    # Ignored as in a command that runs in the background of a script
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(TimeOver), until(time.monotonic() + 0.05):
            rows_of(chain_of(hangs), batch_of(a=[1]))
    finally:
        signal.signal(signal.SIGINT, before)


def test_time_limits_and_stop_signals_are_not_errors_of_the_function() -> None:
    from billiard.common import _shutdown_cleanup, clear_terminate_handler_fired
    from billiard.exceptions import SoftTimeLimitExceeded
    from billiard.pool import soft_timeout_sighandler

    def too_long(batch: pa.RecordBatch) -> pa.RecordBatch:
        soft_timeout_sighandler(signal.SIGUSR1, None)
        return batch

    def stopped(batch: pa.RecordBatch) -> pa.RecordBatch:
        # SIGCHLD instead of SIGTERM, for which pytest has a handler.
        _shutdown_cleanup(signal.SIGCHLD, None)
        return batch

    with pytest.raises(SoftTimeLimitExceeded):
        rows_of(chain_of(too_long), batch_of(a=[1]))
    try:
        with pytest.raises(SystemExit):
            rows_of(chain_of(stopped), batch_of(a=[1]))
    finally:
        clear_terminate_handler_fired()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda batch: batch.to_pylist(), "returned list, not a pyarrow.RecordBatch"),
        (lambda batch: None, "returned NoneType"),
        (lambda batch: batch_of(a=[1, 2, 3]), "gave 3 rows for 2 without the column _record"),
        (lambda batch: batch_of(a=[1], _record=[2]), "gave _record 2: the batch has the records"),
        (lambda batch: batch_of(a=[1], _record=[-1]), "gave _record -1"),
        (lambda batch: batch_of(a=[1, 1], _record=[0, None]), "1 nulls"),
        (lambda batch: batch_of(a=[1], _record=["0"]), "a column _record of string"),
        (
            lambda batch: pa.RecordBatch.from_arrays([pa.array([1, 2])] * 2, ["a", "a"]),
            "gave 2 columns named 'a'",
        ),
    ],
)
def test_an_invalid_result_ends_the_job_and_names_the_function(result: Any, message: str) -> None:
    with pytest.raises(TransformError, match="transform t:0 ") as caught:
        rows_of(chain_of(result), batch_of(a=["x", "y"]))
    assert message in str(caught.value)


def test_a_result_without_rows_keeps_its_columns() -> None:
    pieces, errors = chain_of(lambda batch: batch.slice(0, 0)).apply(batch_of(a=["x"], b=[1]))
    assert errors == {}
    assert [(list(piece.columns), len(piece.rows)) for piece in pieces] == [(["a", "b"], 0)]


def test_a_batch_without_rows_asks_for_columns_and_may_not_raise() -> None:
    empty = batch_of(a=pa.array([], pa.string()))
    assert [list(p.columns) for p in chain_of(lambda b: b).apply(empty)[0]] == [["a"]]
    with pytest.raises(TransformError, match=r"raises IndexError.*on a batch without rows"):
        chain_of(lambda b: b.column("a")[0].as_py()).apply(empty)


def test_pieces_whose_types_differ_are_kept_apart() -> None:
    def typed(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column("n").to_pylist()
        if len(set(values)) > 1:
            raise ValueError("of one kind, please")
        kind = pa.int64() if values[0] == 1 else pa.string()
        return pa.RecordBatch.from_arrays([pa.array(values).cast(kind)], ["n"])

    pieces, errors = chain_of(typed).apply(batch_of(n=[1, 1, 2, 2]))

    assert errors == {}
    assert [piece.columns["n"].to_pylist() for piece in pieces] == [[1, 1], ["2", "2"]]


def test_slices_grow_until_they_give_enough_rows() -> None:
    def fan_out(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.take(pa.array([i // 1000 for i in range(1000 * batch.num_rows)]))

    most, seen = 0, 0
    for applied in chain_of(fan_out).run(batch_of(n=list(range(1000)))):
        rows = sum(len(piece.rows) for piece in applied.pieces)
        most, seen = max(most, rows if applied.first else 0), seen + rows
    assert seen == 1_000_000
    assert most <= SLICE_ROWS

    sizes = [a.end - a.first for a in chain_of(lambda b: b).run(batch_of(n=list(range(20_000))))]
    assert sizes == [64, 256, 1024, 4096, 14560]


def test_the_caller_is_called_back_between_slices_and_while_failures_are_located() -> None:
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1

    list(chain_of(lambda b: b).run(batch_of(n=list(range(64))), tick))
    assert ticks == 1
    list(chain_of(raising_on("n", 5)).run(batch_of(n=list(range(64))), tick))
    assert ticks > 6


def test_the_caller_is_called_back_between_functions_and_rows_of_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, ticks = 0.0, 0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    @each_row
    def slow(row: dict[str, Any]) -> dict[str, Any]:
        nonlocal now
        now += 1.0
        return row

    def tick() -> None:
        nonlocal ticks
        ticks += 1

    list(chain_of(slow).run(batch_of(n=list(range(8))), tick))
    assert ticks == 8
    ticks = 0
    list(chain_of(lambda b: b, lambda b: b).run(batch_of(n=[1]), tick))
    assert ticks == 2

    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):  # it is not an error of the row
        chain_of(slow).apply(batch_of(n=[1, 2]), stop)


def test_slices_of_a_slow_function_stay_short(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal now
        now += 0.01 * batch.num_rows
        return batch

    sizes = [a.end - a.first for a in chain_of(slow).run(batch_of(n=list(range(1000))))]
    assert max(sizes) <= 101


def types_seen(seen: list[dict[str, pa.DataType]]) -> Any:
    """A function of batches that records the types of its input."""

    def note(batch: pa.RecordBatch) -> pa.RecordBatch:
        types = dict(zip(batch.schema.names, batch.schema.types, strict=True))
        seen.append({name: kind for name, kind in types.items() if name != RECORD})
        return batch

    return note


@each_row
def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def test_unchanged_values_of_a_function_of_rows_keep_their_type() -> None:
    # Given columns of types that their values do not show, and one without a value
    columns = {
        "id": pa.array([1, 2], pa.int16()),
        "email": pa.array([None, None], pa.string()),
        "tags": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32())),
        "at": pa.array([1, 2], pa.timestamp("ms", "UTC")),
        "pair": pa.array([{"x": 1, "y": None}, None], pa.struct({"x": pa.int8(), "y": pa.int8()})),
    }
    given = pa.RecordBatch.from_pydict(columns)
    seen: list[dict[str, pa.DataType]] = []

    rows, errors = rows_of(chain_of(same, same, types_seen(seen)), given)

    assert (errors, seen) == ({}, [{name: column.type for name, column in columns.items()}])
    assert [row for _, row in rows] == given.to_pylist()


def test_changed_values_have_the_type_of_the_new_values() -> None:
    @each_row
    def other(row: dict[str, Any]) -> dict[str, Any]:
        return {"age": int(row["age"]), "day": row["at"], "new": None}

    seen: list[dict[str, pa.DataType]] = []
    at = pa.array([3_600_000], pa.timestamp("ms"))
    given = pa.RecordBatch.from_pydict({"age": ["7"], "at": at, "day": pa.array([0], pa.date32())})
    rows_of(chain_of(other, types_seen(seen)), given)

    assert seen == [{"age": pa.int64(), "day": pa.timestamp("us"), "new": pa.string()}]


def test_declared_columns_of_a_function_of_rows_are_the_input_of_the_next() -> None:
    # Given a function that declares two columns and returns another type, no value, or a third
    @each_row(columns={"id": pa.int32(), "tag": pa.string()})
    def tagged(row: dict[str, Any]) -> dict[str, Any]:
        match row["id"]:
            case 1:
                return {"id": 1}
            case 2:
                return {"id": 2.5}
            case 3:
                return {"id": 3, "what": 4}
        return {"id": row["id"], "tag": row["id"]}

    seen: list[dict[str, pa.DataType]] = []
    chain = chain_of(tagged, types_seen(seen))
    rows, errors = rows_of(chain, batch_of(id=[1, 2, 3, 4]))

    assert seen == [{"id": pa.int32(), "tag": pa.string()}]
    assert rows == [(0, {"id": 1, "tag": None}), (3, {"id": 4, "tag": "4"})]
    assert errors[2].startswith("t:0: ValueError: gave a column 'what', which")
    assert errors[1].startswith("t:0: column 'id': ") and "2.5" in errors[1]
    assert len(errors) == 2

    # And after a second function that declares none and changes nothing, numbers stay numbers
    seen.clear()
    rows_of(chain_of(tagged, same, types_seen(seen)), batch_of(id=[4, 5]))
    assert seen == [{"id": pa.int32(), "tag": pa.int64()}]


def test_times_finer_than_pythons_are_not_errors() -> None:
    # Given nanoseconds, which Python's datetime does not have
    moments = pa.array([None, -1, 1_700_000_000_000_000_999], pa.timestamp("ns", "UTC"))
    times = pa.array([1000, 36_000_000_000_001, None], pa.time64("ns"))

    rows, errors = rows_of(chain_of(same), batch_of(moment=moments, time=times))

    # Then timestamps are floored, and a time of day is text
    assert errors == {}
    assert [row["moment"] for _, row in rows] == [
        None,
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.UTC),
        datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC),
    ]
    assert [row["time"] for _, row in rows] == [
        datetime.time(0, 0, 0, 1),
        "10:00:00.000000001",
        None,
    ]


def test_names_are_checked_only_for_the_last_function_of_rows() -> None:
    @each_row
    def first(row: dict[str, Any]) -> dict[str, Any]:
        return {"other": row["n"]}

    @each_row(columns=["n", "m"])
    def second(row: dict[str, Any]) -> dict[str, Any]:
        return {"n": row["other"]}

    rows, errors = rows_of(chain_of(first, second, names=["n", "m"]), batch_of(n=[1, 2]))

    assert (rows, errors) == ([(0, {"n": 1, "m": None}), (1, {"n": 2, "m": None})], {})
    assert declared_columns([Transform("a", first), Transform("b", second)]) == ["n", "m"]
    assert declared_columns([Transform("b", second), Transform("a", first)]) is None


def test_reasons_are_short_and_on_one_line() -> None:
    class Nasty(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert reason_of(KeyError("x")) == "KeyError: 'x'"
    assert reason_of(ValueError("a\nb \x1b[31m")) == "ValueError: a b \\x1b[31m"
    assert len(reason_of(ValueError("x" * 9999))) < 330
    assert reason_of(Nasty()) == "Nasty: (its text is unavailable)"
    assert reason_of(ValueError()) == "ValueError"


def test_times_within_values_are_exact_or_errors() -> None:
    """With pandas installed, pyarrow would cut off the nanoseconds of these."""
    lists = pa.array([[1000], [36_000_000_000_001], [], None], pa.list_(pa.time64("ns")))
    entries = [[("a", 1000)], [("a", 1)], [], None]
    maps = pa.array(entries, pa.map_(pa.string(), pa.time64("ns")))
    structs = pa.array(
        [{"t": 1000}, {"t": 1}, {"t": None}, None], pa.struct({"t": pa.time64("ns")})
    )

    rows, errors = rows_of(chain_of(same), batch_of(l=lists, m=maps, s=structs))

    assert list(errors) == [1] and "nanoseconds" in errors[1]
    times = datetime.time(0, 0, 0, 1)
    assert [row["l"] for _, row in rows] == [[times], [], None]
    assert [row["m"] for _, row in rows] == [[("a", times)], [], None]
    assert [row["s"] for _, row in rows] == [{"t": times}, {"t": None}, None]
