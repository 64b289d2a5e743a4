"""A random life of a job on a real server, compared with a small model after every step.

Workers here fail like real ones: they die, stall past their lease and return, commit twice, and act
on messages that are late, repeated or from an earlier epoch. The model only has the invariants that
must hold in every case; it does not repeat the logic of the scripts.
"""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ringhaul.breadcrumb import Loss
from ringhaul.errors import UsageError
from ringhaul.ledger.answers import Claimed, Commit, Lease, Refusal
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.states import RESUMABLE, JobState, final_state, may_move
from tests.integration.ledger.conftest import Clock

LEASE_MS = 10_000
UNCLAIMED_MS = 4_000
FAILS_MAX = 2
_jobs = itertools.count(1)
PICK = st.integers(0, 2**31)


@dataclass(frozen=True)
class Attempt:
    """An attempt that claimed the unit once, and may still try to commit."""

    unit: int
    epoch: int
    token: str
    rows: int  #: Different for every attempt, so that the totals show whose commit counted.
    rejected: int


class LedgerMachine(RuleBasedStateMachine):
    """Set `client` and `scripts` on a subclass before running it."""

    client: redis.Redis
    scripts: dict[str, str]

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(self.client)
        self.ledger = Ledger(
            self.client,
            fails_max=FAILS_MAX,
            unclaimed_ms=UNCLAIMED_MS,
            patience_ms=2000,
            scripts=self.scripts,
        )
        self.job = f"ld-{next(_jobs):06x}"
        self.state = JobState.RUNNING
        self.epoch = 1
        self.units = 0
        self.sealed = False
        self.paused = False
        self.messages: list[tuple[int, int]] = []  #: (unit, epoch); never removed: they repeat
        self.attempts: list[Attempt] = []
        self.counted: dict[int, Attempt] = {}
        self.kept: dict[int, Attempt] = {}  #: attempts that stopped the job with a unit's rejects
        self.starts_max = 0
        self.numbers = itertools.count(1)

    @initialize(limit=st.sampled_from(["-1", "40"]), starts_max=st.sampled_from([1, 3]))
    def create(self, limit: str, starts_max: int) -> None:
        self.starts_max = starts_max
        error_limit = ErrorLimit.parse(limit)
        self.ledger.create(self.job, {}, "{}", error_limit=error_limit, starts_max=starts_max)

    # The producer

    @rule(more=st.integers(1, 6), overlap=st.integers(0, 3))
    def add_units(self, more: int, overlap: int) -> None:
        first = max(0, self.units - overlap)
        specs = [f"spec-{unit}" for unit in range(first, self.units + more)]
        count = self.ledger.add_units(self.job, self.epoch, first, specs)
        if self.state is not JobState.RUNNING:
            assert count is None
        elif self.sealed:
            assert count == self.units
        else:
            self.units += more
            assert count == self.units

    @rule()
    @precondition(lambda self: self.units > 3)
    def seal(self) -> None:
        if self.ledger.seal(self.job, self.epoch, self.units) is not None:
            self.sealed = True

    @rule()
    def seal_with_units_missing(self) -> None:
        assert self.ledger.seal(self.job, self.epoch, self.units + 1) in (None, self.units)

    @rule(window=st.integers(0, 5))
    def issue(self, window: int) -> None:
        before = self.ledger.status(self.job)
        epoch, units, *_ = self.ledger.issue(self.job, window)
        assert len(units) <= max(0, window - before.issued - before.leased)
        assert not set(units) & self.counted.keys()
        assert not units or not self.paused
        self.messages += [(unit, epoch) for unit in units]

    # Workers. `pick` chooses among all messages or attempts so far; claims prefer recent ones,
    # like most real messages.

    @rule(pick=PICK, newest=st.booleans())
    @precondition(lambda self: self.messages)
    def claim(self, pick: int, newest: bool) -> None:
        choice = self.messages[-4:] if newest else self.messages
        unit, epoch = choice[pick % len(choice)]
        owner = self.client.hget(self._key("owner"), unit)
        expiry = self.client.zscore(self._key("lease"), unit)
        not_before = self.client.zscore(self._key("due"), unit)
        number = next(self.numbers)
        attempt = Attempt(unit, epoch, f"t{number}", 1000 + number, number % 7)
        answer = self.ledger.claim(self.job, unit, epoch, attempt.token, LEASE_MS)
        if self.state is not JobState.RUNNING or epoch != self.epoch:
            assert answer is Refusal.STOP
        elif unit in self.counted:
            assert answer is Refusal.DONE
        elif isinstance(answer, Claimed):
            assert not self.paused
            assert owner is None or (expiry is not None and expiry <= self.clock.now_ms)
            assert not_before is None or not_before <= self.clock.now_ms
            assert 1 <= answer.attempt <= self.starts_max
            assert answer.spec == f"spec-{unit}"
            again = self.ledger.claim(self.job, unit, epoch, attempt.token, LEASE_MS)
            assert again == answer
            self.attempts.append(attempt)
        else:
            assert answer in (Refusal.BUSY, Refusal.QUARANTINED, Refusal.PAUSED)
            assert (answer is not Refusal.PAUSED) or self.paused

    @rule(pick=PICK, newest=st.booleans(), times=st.integers(1, 2))
    @precondition(lambda self: self.attempts)
    def commit(self, pick: int, newest: bool, times: int) -> None:
        a = self._attempt(pick, newest)
        for _ in range(times):
            answer = self.ledger.commit(
                self.job,
                a.unit,
                a.epoch,
                a.token,
                a.token,
                {"rows": a.rows, "rejected": a.rejected},
                {"5": a.rows},
                extra=a.token.encode() if a.rejected else b"",
            )
            if a.epoch != self.epoch:
                assert answer is Commit.STALE
            elif a.unit in self.counted:
                assert answer is Commit.REPEATED
            elif self.state is JobState.QUARANTINED:
                assert answer is Commit.STALE
            else:
                assert answer is Commit.COUNTED
                self.counted[a.unit] = a
                self.kept.pop(a.unit, None)

    @rule(pick=PICK, newest=st.booleans(), rows=st.integers(0, 999))
    @precondition(lambda self: self.attempts)
    def renew(self, pick: int, newest: bool, rows: int) -> None:
        a = self._attempt(pick, newest)
        owns = self._owns(a)
        answer, _ = self.ledger.renew(self.job, a.unit, a.token, LEASE_MS, Live(rows=rows))
        if self.state is not JobState.RUNNING:
            assert answer is Lease.STOP
        else:
            kept = Lease.PAUSE if self.paused else Lease.OK
            assert answer is (kept if owns else Lease.LOST)

    @rule(pick=PICK, blamed=st.booleans(), delay_ms=st.sampled_from([0, 3000]))
    @precondition(lambda self: self.attempts)
    def release(self, pick: int, blamed: bool, delay_ms: int) -> None:
        a = self._attempt(pick, newest=True)
        owns = self._owns(a)
        answer = self.ledger.release(
            self.job, a.unit, a.token, "tired", blamed=blamed, delay_ms=delay_ms
        )
        assert answer is (Lease.OK if owns else Lease.LOST)

    @rule(pick=PICK, newest=st.booleans(), delay_ms=st.sampled_from([0, 3000]))
    @precondition(lambda self: self.messages)
    def decline(self, pick: int, newest: bool, delay_ms: int) -> None:
        choice = self.messages[-4:] if newest else self.messages
        unit, epoch = choice[pick % len(choice)]
        issued = self.client.zscore(self._key("issued"), unit) is not None
        meant = self.state is JobState.RUNNING and epoch == self.epoch
        answer = self.ledger.decline(self.job, unit, epoch, delay_ms=delay_ms)
        assert answer is (Lease.OK if meant and issued else Lease.LOST)

    @rule(pick=PICK, one_in=st.integers(0, 3))
    @precondition(lambda self: self.attempts)
    def stop(self, pick: int, one_in: int) -> None:
        if one_in:
            return
        a = self._attempt(pick, newest=True)
        owns = self._owns(a)
        live = Live(rows=a.rows, rejected=a.rejected)
        answer = self.ledger.stop(self.job, a.unit, a.token, live, a.token.encode())
        assert answer is (Lease.OK if owns else Lease.LOST)
        if owns:
            self.kept[a.unit] = a
            running = self.state is JobState.RUNNING
            state = self.ledger.status(self.job).state
            assert state is (JobState.STOPPED if running else self.state)
            self.state = state  # the unit is in no set until a resume

    @rule(pick=PICK, together=st.integers(0, 3), newest=st.booleans())
    @precondition(lambda self: self.attempts)
    def lose(self, pick: int, together: int, newest: bool) -> None:
        a = self._attempt(pick, newest=newest)
        owns = self._owns(a)
        loss = Loss("convert", "in.csv", "c", 1, 0, together, 0)
        answer = self.ledger.lost(self.job, a.unit, a.token, loss=loss, epoch=a.epoch)
        assert answer is (Lease.OK if owns else Lease.LOST)

    # Time, sweepers, users

    @rule(ms=st.sampled_from([1, 3000, UNCLAIMED_MS, LEASE_MS]))
    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule()
    def sweep(self) -> None:
        self.ledger.sweep(self.job)
        again = self.ledger.sweep(self.job)
        assert again.expired == 0

    @rule(pick=st.integers(0, 3))
    def cancel(self, pick: int) -> None:
        if pick == 0:
            self.ledger.cancel(self.job)

    @rule()
    def pause(self) -> None:
        assert self.ledger.pause(self.job) is self.state
        self.paused = self.state is JobState.RUNNING

    @rule()
    def unpause(self) -> None:
        assert self.ledger.unpause(self.job) is self.paused
        self.paused = False

    @rule()
    def resume(self) -> None:
        if self.state not in RESUMABLE:
            try:
                self.ledger.resume(self.job)
            except UsageError:
                return
            raise AssertionError(f"resumed in {self.state}")
        self.epoch += 1
        self.kept = {}
        assert self.ledger.resume(self.job) == self.epoch
        self.state = JobState.RUNNING  # perhaps only for a moment: it may have no unit left

    # Invariants after every step

    @invariant()
    def figures_are_those_of_the_counted_attempts(self) -> None:
        status = self.ledger.status(self.job)
        assert may_move(self.state, status.state), (self.state, status.state)
        self.state = status.state
        self.paused = self.paused and not status.finished
        assert status.paused is self.paused
        assert (status.epoch, status.units, status.sealed) == (self.epoch, self.units, self.sealed)
        counted = self.counted.values()
        rejected = sum(a.rejected for a in counted)
        assert status.totals.get("rows", 0) == sum(a.rows for a in counted)
        assert status.totals.get("rejected", 0) == rejected
        assert self.ledger.latencies(self.job).get("5", 0) == sum(a.rows for a in counted)
        assert dict(self.ledger.results(self.job)) == {a.unit: a.token for a in counted}
        assert dict(self.ledger.extras(self.job)) == {
            a.unit: a.token.encode()
            for a in [*counted, *self.kept.values()]
            if a.rejected or a.unit in self.kept
        }
        assert self.client.bitcount(self._key("done")) == len(self.counted) == status.done
        assert status.pending == self.units - len(self.counted) - status.quarantined >= 0
        over = self.sealed and status.pending == 0
        if over:
            assert status.state is not JobState.RUNNING
        if status.state in (JobState.COMPLETE, JobState.PARTIAL, JobState.QUARANTINED):
            assert over
            assert status.state is final_state(
                rejected_records=rejected, quarantined_units=status.quarantined
            )

    @invariant()
    def every_unit_is_in_one_place(self) -> None:
        if self.state is not JobState.RUNNING:
            return
        pipeline = self.client.pipeline(transaction=False)
        for part in ("issued", "due", "lease", "suspects"):
            pipeline.zrange(self._key(part), 0, -1)
        pipeline.zrange(self._key("begun"), 0, -1)
        pipeline.hkeys(self._key("bad"))
        pipeline.hkeys(self._key("owner"))
        pipeline.hget(self._key("meta"), "next")
        pipeline.hgetall(self._key("starts"))
        *groups, next_unit, raw_starts = pipeline.execute()
        issued, due, leased, suspects, working, bad, owned = (
            {int(unit) for unit in g} for g in groups
        )
        starts = {int(unit): int(number) for unit, number in raw_starts.items()}
        waiting = suspects - issued - leased
        pending = set(range(int(next_unit), self.units)) - set(self.counted)
        places = [issued, due, leased, waiting, bad, set(self.counted), pending]
        assert sorted(unit for place in places for unit in place) == list(range(self.units))
        assert owned == working == leased
        assert not issued or not self.paused
        if suspects & (issued | leased):
            assert len(issued | leased) == 1  # alone
            assert not pending and not due  # and last
        assert not starts.keys() & self.counted.keys()
        noted = {int(field.split(b":")[0]) for field in self.client.hkeys(self._key("losses"))}
        assert not noted & self.counted.keys()
        assert all(1 <= starts[unit] <= self.starts_max for unit in leased)

    def teardown(self) -> None:
        """Let well-behaved workers finish the job from its current state."""
        if self.state in RESUMABLE:
            self.resume()
        self.unpause()
        if not self.sealed:
            self.ledger.seal(self.job, self.epoch, self.units)
            self.sealed = True
        for _ in range(3 * self.units + 10):
            if self.ledger.status(self.job).state is not JobState.RUNNING:
                break
            self.clock.advance(LEASE_MS + 16 * UNCLAIMED_MS)
            self.ledger.sweep(self.job)
            for unit in self.ledger.issue(self.job, 4).units:
                answer = self.ledger.claim(self.job, unit, self.epoch, f"end{unit}", LEASE_MS)
                assert isinstance(answer, Claimed), answer
                done = Attempt(unit, self.epoch, f"end{unit}", 1, 0)
                assert self.ledger.commit(
                    self.job, unit, self.epoch, done.token, done.token, {"rows": 1}, {"5": 1}
                )
                self.counted[unit] = done
        self.state = JobState.RUNNING
        self.figures_are_those_of_the_counted_attempts()
        assert self.state in (
            JobState.COMPLETE,
            JobState.PARTIAL,
            JobState.QUARANTINED,
            JobState.STOPPED,
        )

    def _attempt(self, pick: int, newest: bool) -> Attempt:
        choice = self.attempts[-3:] if newest else self.attempts
        return choice[pick % len(choice)]

    def _owns(self, attempt: Attempt) -> bool:
        owner = self.client.hget(self._key("owner"), attempt.unit)
        return owner == attempt.token.encode()

    def _key(self, part: str) -> str:
        return f"ringhaul:{{{self.job}}}:{part}"


def walk(
    machine: LedgerMachine, seed: int, steps: int, *, stops: bool = False, declines: bool = False
) -> None:
    """Run one random life with the weights of a busy job. It finds a planted fault sooner than
    hypothesis, which looks for small examples. `stops`: units may stop the job; `declines`: workers
    may decline units."""
    chance = random.Random(seed)

    def pick() -> int:
        return chance.randrange(2**31)

    def claim() -> None:
        if machine.messages:
            machine.claim(pick(), chance.random() < 0.7)

    def commit() -> None:
        if machine.attempts:
            machine.commit(pick(), chance.random() < 0.7, chance.choice([1, 1, 2]))

    def decline() -> None:
        if machine.messages:
            machine.decline(pick(), chance.random() < 0.7, chance.choice([0, 3000]))

    def renew() -> None:
        if machine.attempts:
            machine.renew(pick(), chance.random() < 0.7, chance.randrange(1000))

    def release() -> None:
        if machine.attempts:
            machine.release(pick(), chance.random() < 0.2, chance.choice([0, 3000]))

    def stop() -> None:
        if machine.attempts:
            machine.stop(pick(), chance.randrange(4))

    def lose() -> None:
        if machine.attempts:
            machine.lose(pick(), chance.choice([0, 0, 0, 0, 1, 3]), chance.random() < 0.9)

    weights: dict[Callable[[], None], int] = {
        lambda: machine.add_units(chance.randint(1, 3), chance.randint(0, 3)): 4,
        lambda: machine.issue(chance.randint(1, 5)): 12,
        lambda: machine.pass_time(chance.choice([1, 3000, UNCLAIMED_MS, LEASE_MS])): 10,
        lambda: machine.seal() if machine.units > 3 else None: 3,
        machine.seal_with_units_missing: 1,
        machine.sweep: 8,
        lambda: machine.cancel(chance.randrange(2)): 2,
        machine.resume: 3,
        machine.pause: 2,
        machine.unpause: 4,
        claim: 24,
        commit: 12,
        renew: 6,
        release: 6,
        lose: 9,
        stop: 3 * stops,
        decline: 3 * declines,
    }
    machine.create(chance.choice(["-1", "40"]), chance.choice([1, 3]))
    for step in chance.choices(list(weights), list(weights.values()), k=steps):
        step()
        machine.figures_are_those_of_the_counted_attempts()
        machine.every_unit_is_in_one_place()
    machine.teardown()
