"""Who can run what: which workers serve a lane, and what the others lack.

A worker serves a lane if it takes from its queue, is in its region, has all labels that are
required, runs targets of its type and knows its handler. Where nobody does, the first of these that
nobody has is the one to name: workers that have it would be asked about the next.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, NamedTuple

from foliot.core.phrases import join

EVERY_QUEUE: Final = "*"
_NAMED_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Lane:
    queue: str
    region: str | None
    requires: tuple[str, ...]
    target_type: str
    handler: str | None


@dataclass(frozen=True, slots=True)
class Staff:
    """Live workers that are alike; `capacity` and `in_use` are of all of them together."""

    number: int
    capacity: int
    in_use: int
    queues: tuple[str, ...]
    region: str | None
    labels: tuple[str, ...]
    target_types: tuple[str, ...]
    handlers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Workforce:
    """`silent`: not heard for so long that they are given up; `draining`: they take nothing new."""

    live: tuple[Staff, ...] = ()
    silent: int = 0
    draining: int = 0

    @property
    def number(self) -> int:
        return _number(self.live)


NOBODY: Final = Workforce()


class Missing(StrEnum):
    """The nearest miss."""

    WORKER = "WORKER"
    QUEUE = "QUEUE"
    REGION = "REGION"
    LABELS = "LABELS"
    TARGET_TYPE = "TARGET_TYPE"
    HANDLER = "HANDLER"


class Lack(NamedTuple):
    missing: Missing
    message: str
    way_out: str


def serves(staff: Staff, lane: Lane) -> bool:
    return all(fits(staff, lane) for fits, _ in _STEPS)


def serving(workers: Workforce, lane: Lane) -> tuple[Staff, ...]:
    return tuple(staff for staff in workers.live if serves(staff, lane))


def find_lack(workers: Workforce, lane: Lane) -> Lack | None:
    """None if somebody serves the lane."""
    if not workers.live:
        return _no_worker(workers)
    left = workers.live
    for fits, tell in _STEPS:
        found = tuple(staff for staff in left if fits(staff, lane))
        if not found:
            return tell(left, lane)
        left = found
    return None


def _no_worker(workers: Workforce) -> Lack:
    away = [
        f"{number} {what}"
        for number, what in ((workers.silent, "silent"), (workers.draining, "draining"))
        if number
    ]
    told = f"no worker is running ({join(away)})" if away else "no worker is running"
    return Lack(Missing.WORKER, told, "start one: foliot worker run")


def _takes_queue(staff: Staff, lane: Lane) -> bool:
    return lane.queue in staff.queues or EVERY_QUEUE in staff.queues


def _lacks_queue(left: Sequence[Staff], lane: Lane) -> Lack:
    others = _some({queue for staff in left for queue in staff.queues})
    return Lack(
        Missing.QUEUE,
        f"none of {_live(left)} takes from queue {lane.queue} (they take from {others})",
        f"start a worker with --queues {lane.queue}",
    )


def _is_in_region(staff: Staff, lane: Lane) -> bool:
    return lane.region is None or lane.region == staff.region


def _lacks_region(left: Sequence[Staff], lane: Lane) -> Lack:
    others = _some({staff.region or "none" for staff in left})
    return Lack(
        Missing.REGION,
        f"none of {_live(left)} of queue {lane.queue} is in region {lane.region}"
        f" (they are in {others})",
        f"start a worker with --region {lane.region}, or change region of the job",
    )


def _has_labels(staff: Staff, lane: Lane) -> bool:
    return set(lane.requires) <= set(staff.labels)


def _lacks_labels(left: Sequence[Staff], lane: Lane) -> Lack:
    """What the one that has most of them lacks."""
    gaps = [sorted(set(lane.requires) - set(staff.labels)) for staff in left]
    lacking = min(gaps, key=lambda gap: (len(gap), gap))
    word = "label" if len(lacking) == 1 else "labels"
    return Lack(
        Missing.LABELS,
        f"{word} {join(lacking)} missing: none of {_live(left)} that could take it has"
        f" {'it' if len(lacking) == 1 else 'them all'}",
        f"start a worker with --labels {','.join(lane.requires)}, or change requires of the job",
    )


def _runs_type(staff: Staff, lane: Lane) -> bool:
    return lane.target_type in staff.target_types


def _lacks_type(left: Sequence[Staff], lane: Lane) -> Lack:
    what, way_out = _TYPES.get(
        lane.target_type, (f"runs {lane.target_type} targets", "start one that does")
    )
    return Lack(Missing.TARGET_TYPE, f"none of {_live(left)} that could take it {what}", way_out)


_TYPES: Final = {
    "HANDLER": ("has handlers", "start a worker with the module that has the handler"),
    "COMMAND": ("is allowed to run commands", "start a worker with FOLIOT_COMMANDS"),
    "HTTP": ("calls HTTP targets", "start a worker that calls HTTP targets"),
}


def _knows_handler(staff: Staff, lane: Lane) -> bool:
    return lane.handler is None or lane.handler in staff.handlers


def _lacks_handler(left: Sequence[Staff], lane: Lane) -> Lack:
    known = {handler for staff in left for handler in staff.handlers}
    like = get_close_matches(lane.handler or "", sorted(known), n=3)
    told = f"handler {lane.handler} is known to none of {_live(left)} that could take it"
    return Lack(
        Missing.HANDLER,
        f"{told}; {join(like)} {'is' if len(like) == 1 else 'are'} known" if like else told,
        "start a worker with the module that has it, or correct the name in target of the job",
    )


_Fits = Callable[[Staff, Lane], bool]
_Tell = Callable[[Sequence[Staff], Lane], Lack]
_STEPS: Final[tuple[tuple[_Fits, _Tell], ...]] = (
    (_takes_queue, _lacks_queue),
    (_is_in_region, _lacks_region),
    (_has_labels, _lacks_labels),
    (_runs_type, _lacks_type),
    (_knows_handler, _lacks_handler),
)


def _number(staff: Iterable[Staff]) -> int:
    return sum(each.number for each in staff)


def _live(staff: Sequence[Staff]) -> str:
    number = _number(staff)
    return f"{number} live {'worker' if number == 1 else 'workers'}"


def _some(names: Iterable[str]) -> str:
    """The first few by name."""
    ordered = sorted(names) or ["none"]
    if len(ordered) <= _NAMED_MAX:
        return join(ordered)
    return f"{', '.join(ordered[:_NAMED_MAX])} and {len(ordered) - _NAMED_MAX} more"
