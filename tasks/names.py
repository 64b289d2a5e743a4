"""Task names carried by messages. The meaning of a name never changes."""


class TaskNames:
    """Celery task names."""

    LOAD_UNIT = "ringhaul.records.unit"
    VERIFY_UNIT = "ringhaul.verify.unit"
    READ_UNIT = "ringhaul.read.unit"
    ASK_UNIT = "ringhaul.ask.unit"
