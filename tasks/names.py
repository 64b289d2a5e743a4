"""Names carried by messages and between processes. The meaning of a name never changes."""

#: Environment variable of a worker; "0": it takes only units of loads.
READS_VARIABLE = "_RINGHAUL_READS"


class TaskNames:
    """Celery task names."""

    LOAD_UNIT = "ringhaul.records.unit"
    VERIFY_UNIT = "ringhaul.verify.unit"
    READ_UNIT = "ringhaul.read.unit"
    ASK_UNIT = "ringhaul.ask.unit"
