"""Options of `load` as `exec` names them, for the values of its statement. Pure."""

from __future__ import annotations

from producer.translate.queries import with_markers_of_times
from producer.translate.translation import Draft

#: Options that exec and load both have, under one name.
_OF_EXEC = (
    "--params --nulls --rate --job-id --consistency --contact-points --port --local-dc --user "
    "--password --secure-connect-bundle --cqlshrc --workers"
)
#: Options of load that exec has for the values of its statement.
_OF_RECORDS = (
    "--format --no-header --columns --skip-columns --delimiter --quote --escape --escape-style "
    "--line-end --comment --encoding --null --null-quoted --empty --fill-empty --fill-quoted "
    "--trim --skip-rows --max-rows --rows-per --allow-extra-fields --allow-missing-fields "
    "--mapping --accept --blob --json-layout --timestamp-format --date-format --time-format "
    "--epoch --epoch-unit --timezone --locale --true-words --false-words --decimal-sep "
    "--thousands-sep --overflow --rounding"
)


def use_names_of_exec(draft: Draft) -> None:
    """Rename options: those about records have another name for the values of a statement."""
    for mapping in draft.values("--mapping"):
        draft.add("--mapping", with_markers_of_times(draft.operands[0], mapping))
    for name in draft.names():
        if name in _OF_RECORDS.split():
            prefix = "--no-values-" if name.startswith("--no-") else "--values-"
            draft.rename(name, prefix + name.removeprefix("--no-").removeprefix("--"))
        elif name not in _OF_EXEC.split():
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
