"""Judge what a host gives to processes: descriptors, room on disks, its clock.

The same judgements are made of this host and of each worker's. (A worker's host cannot hide what
ours shows: it runs these checks itself and reports what it saw.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from producer.doctor.finding import State
from producer.text import bytes_text
from tasks.host.report import Folder, Machine

#: A worker process has three connections to each node of its data centre, and its parent some eight
#: pipes to each process: 1,024, which is Linux's default, suffices for 300 nodes or 100 processes.
DESCRIPTORS_MIN = 1024
#: Below this, a worker cannot start its processes and a command cannot open its session.
DESCRIPTORS_NEEDED = 256
#: Streams, partial results and logs of jobs.
FREE_BYTES_MIN = 2**30
FREE_BYTES_NEEDED = 64 * 2**20


@dataclass(frozen=True)
class Judgement:
    """How one check of one host came out; as a `Finding`, without what it is about."""

    state: State
    text: str
    advice: str = ""


def judge_descriptors(machine: Machine) -> Judgement:
    """Judge the limit of open files."""
    limit = machine.descriptors
    if limit is None:
        return Judgement(State.OK, "no limit")
    text = f"{limit:,} open files for a process"
    if limit >= DESCRIPTORS_MIN:
        return Judgement(State.OK, text)
    advice = f"raise it to {DESCRIPTORS_MIN:,} or more (ulimit -n, LimitNOFILE= of systemd)"
    return Judgement(State.FAULT if limit < DESCRIPTORS_NEEDED else State.WARNING, text, advice)


def judge_folders(machine: Machine) -> Judgement:
    """Judge the folders that jobs write to: the worst of them decides."""
    judged = [_judge_folder(folder) for folder in machine.folders]
    worst = [one for one in judged if one.state is State.FAULT] or [
        one for one in judged if one.state is State.WARNING
    ]
    if worst:
        texts, advices = (
            "; ".join(dict.fromkeys(one.text for one in worst)),
            "; ".join(dict.fromkeys(one.advice for one in worst)),
        )
        return Judgement(worst[0].state, texts, advices)
    free = [folder.free_bytes for folder in machine.folders if folder.free_bytes is not None]
    if not free:
        return Judgement(State.UNCHECKED, "the room in the state folder is not known")
    return Judgement(State.OK, f"{bytes_text(min(free))} free for state and spill folders")


def _judge_folder(folder: Folder) -> Judgement:
    setting = "state_dir" if folder.role == "state" else "query.spill_dir"
    place = f"the {folder.role} folder {folder.path}"
    if folder.error:
        advice = f"give the user of ringhaul the right to write there, or change {setting}"
        return Judgement(State.FAULT, f"{place} cannot be written: {folder.error}", advice)
    if folder.free_bytes is None or folder.free_bytes >= FREE_BYTES_MIN:
        return Judgement(State.OK, place)
    full = folder.free_bytes < FREE_BYTES_NEEDED
    return Judgement(
        State.FAULT if full else State.WARNING,
        f"{place} has {bytes_text(folder.free_bytes)} of room left",
        f"make room there, or set {setting} to another disk",
    )


def judge_time_service(machine: Machine, *, one_clock: bool) -> Judgement:
    """Judge whether a time service keeps the clock. `one_clock`: broker, nodes and workers all run
    under this kernel, so that no other clock matters."""
    if machine.synchronised is None:
        return Judgement(State.UNCHECKED, "not known: the kernel does not say")
    if machine.synchronised:
        return Judgement(State.OK, "the kernel's clock is synchronised")
    text = "the kernel's clock is not synchronised"
    if one_clock:
        return Judgement(State.OK, f"{text}, but all that jobs use is on this host")
    advice = "run chrony, or systemd-timesyncd: clocks fix the order of writes"
    return Judgement(State.WARNING, text, advice)


Judge = Callable[[Machine], Judgement]


def judges(*, one_clock: bool) -> Sequence[tuple[str, Judge]]:
    """Return the checks of a host, by name."""
    return (
        ("descriptors", judge_descriptors),
        ("disks", judge_folders),
        ("time service", lambda machine: judge_time_service(machine, one_clock=one_clock)),
    )
