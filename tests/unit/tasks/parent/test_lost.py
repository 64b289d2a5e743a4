"""Reports of lost processes while Redis is away."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ringhaul.breadcrumb import Loss
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.ledger import Ledger
from tasks.parent.lost import LostAttempt, LostAttempts

WHERE = Loss("convert", "in.csv", "n", 2, 0, 64, 0)


class _Ledger:
    def __init__(self) -> None:
        self.away, self.heard = True, list[tuple[str, int, str, Any]]()

    def lost(self, job: str, unit: int, token: str, *, loss: Loss | None, epoch: int) -> None:
        if self.away:
            raise LedgerUnavailable("away")
        if job == "damaged":
            raise JobDamaged(job, ["gone"])
        self.heard.append((job, unit, token, (loss, epoch)))


def test_a_report_that_failed_is_sent_once_when_redis_is_back() -> None:
    ledger, lost = _Ledger(), LostAttempts()
    known = cast(Ledger, ledger)
    lost.report(known, LostAttempt("ld-1", 0, 1, "a", WHERE))
    lost.report(known, LostAttempt("damaged", 0, 1, "b", WHERE))
    with pytest.raises(LedgerUnavailable):
        lost.flush(known)
    ledger.away = False
    lost.report(known, LostAttempt("ld-1", 1, 2, "c", None))
    lost.flush(known)
    assert ledger.heard == [("ld-1", 0, "a", (WHERE, 1)), ("ld-1", 1, "c", (None, 2))]
