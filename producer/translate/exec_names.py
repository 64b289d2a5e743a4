"""Options of `load` as `exec` names them, for the values of its statement."""

from __future__ import annotations

from producer.options.option import flags_of, options_of
from producer.options.output import RowsOutput
from producer.options.spelling import Spelling
from producer.options.statements import ExecOptions
from producer.translate.queries import with_markers_of_times
from producer.translate.translation import Draft

#: Options of load that exec has for the values of its statement.
_OF_RECORDS = flags_of(options_of(Spelling))
#: Options of exec that do not affect how its answers are written. Load has most of them.
_OF_EXEC = flags_of(options_of(ExecOptions, "exec")) - flags_of(options_of(RowsOutput))


def use_names_of_exec(draft: Draft) -> None:
    """Rename options: those about records have another name for the values of a statement."""
    for mapping in draft.values("--mapping"):
        draft.add("--mapping", with_markers_of_times(draft.operands[0], mapping))
    for name in draft.names():
        if name in _OF_RECORDS:
            prefix = "--no-values-" if name.startswith("--no-") else "--values-"
            draft.rename(name, prefix + name.removeprefix("--no-").removeprefix("--"))
        elif name not in _OF_EXEC:
            draft.option = name
            draft.drop(name)
            if name == "--max-errors":
                draft.note("exec has no limit of rejects")
            elif name == "--strategy":
                draft.note("not needed: exec runs its statement once for each record")
            elif name == "--dry-run":
                draft.lose("exec has none, and would run its statement")
            elif name == "--urlfile":
                draft.lose("exec reads one file: run it once for each, with --params FILE")
            elif name not in ("--keyspace", "--table"):
                draft.lose("exec does not have it: its statement says what is written")
