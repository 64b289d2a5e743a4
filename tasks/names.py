"""Names that processes agree on: of tasks, carried by messages, and of a variable for workers. The
meaning of a name never changes."""

#: Environment variable of an embedded worker: the process id of its command.
PARENT_PID_VARIABLE = "_RINGHAUL_PARENT_PID"


class TaskNames:
    """Celery task names."""

    LOAD_UNIT = "ringhaul.records.unit"
    VERIFY_UNIT = "ringhaul.verify.unit"
    READ_UNIT = "ringhaul.read.unit"
    ASK_UNIT = "ringhaul.ask.unit"
