"""Names that processes agree on: of tasks, carried by messages, and of variables for workers. The
meaning of a name never changes."""

#: Environment variable of an embedded worker: the process id of its command.
PARENT_PID_VARIABLE = "_RINGHAUL_PARENT_PID"
#: Environment variable of a worker; "0": it takes only units of loads.
READS_VARIABLE = "_RINGHAUL_READS"


class TaskNames:
    """Celery task names."""

    LOAD_UNIT = "ringhaul.records.unit"
    VERIFY_UNIT = "ringhaul.verify.unit"
    READ_UNIT = "ringhaul.read.unit"
    ASK_UNIT = "ringhaul.ask.unit"
