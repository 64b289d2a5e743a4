"""Names that messages carry; a name never changes its meaning."""


class TaskNames:
    """Celery task names."""

    LOAD_UNIT = "ringhaul.records.unit"
    VERIFY_UNIT = "ringhaul.verify.unit"
    READ_UNIT = "ringhaul.read.unit"
    ASK_UNIT = "ringhaul.ask.unit"
