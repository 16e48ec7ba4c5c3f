"""What a job's overlap policy does when an instant comes while an earlier execution is not over.

It is read from the log of changes in the order of its numbers. Whoever fires or lets go does so
under the job's lock, and whatever it saw gone has a lower number; so what the numbers show to be
live was live for whoever decided.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History
from chaos.checker.verdict import Findings
from chaos.facts import Change, Row

# Between the moment that a statement writes down and what it sees.
_UNDER_WAY: Final = timedelta(seconds=6)
_FOR_EVER: Final = 2**62
# From the time on a commit to the moment that others see it: the disk is waited for.
_COMMITTING: Final = timedelta(seconds=2)
_NEVER_SKIPS: Final = frozenset({"ALLOW", "QUEUE_ALL"})


@dataclass(slots=True)
class Life:
    """A scheduled execution in the log: by numbers, when it came, from when on it was under way and
    no longer held by its job's overlap policy, and when it was over."""

    row: Row
    birth: Change
    changes: list[Change]
    policy: str
    released: int = _FOR_EVER
    death: int = _FOR_EVER

    @property
    def is_born_held(self) -> bool:
        return bool(self.row["hold"] == "OVERLAP")


def check_overlaps(history: History, findings: Findings) -> None:
    lives = _lives(history)
    for each in lives.values():
        _check_job(history, each, findings)
    _check_skips(history, findings)
    _check_skip_policies(history, lives, findings)


def _lives(history: History) -> dict[UUID, list[Life]]:
    found: dict[UUID, list[Life]] = defaultdict(list)
    for changes in history.changes.values():
        row = changes[0].new
        if changes[0].old is None and row is not None and row["trigger"] in ("SCHEDULE", "AFTER"):
            found[row["job_id"]].append(_life(history, row, changes))
    return found


def _life(history: History, row: Row, changes: list[Change]) -> Life:
    life = Life(row, changes[0], changes, _policy(history.policy(row)))
    for change in changes:
        if change.new is None:
            life.death = change.number
        elif life.released == _FOR_EVER and change.new["hold"] != "OVERLAP":
            life.released = change.number
    return life


def _check_job(history: History, lives: list[Life], findings: Findings) -> None:
    """A sweep over what came, was let go and ended; few are live at once."""
    steps: list[tuple[int, int | None, Life]] = [
        (life.birth.number, life.birth.transaction, life) for life in lives
    ]
    steps += [
        (life.released, None, life)
        for life in lives
        if life.is_born_held and life.released < life.death
    ]
    steps.sort(key=lambda step: step[0])
    live: list[Life] = []
    for transaction, group in groupby(steps, key=lambda step: step[1]):
        members = list(group)
        if transaction is None:
            for number, _, life in members:
                live = [one for one in live if one.death > number]
                _check_release(history, life, live, findings)
            continue
        number = members[0][0]
        live = [one for one in live if one.death > number]
        born = [life for _, _, life in members]
        _check_births(born, live, findings)
        live += born


def _check_births(born: list[Life], others: list[Life], findings: Findings) -> None:
    """What one fire made of a job: at most one starts, and only if nothing else is live."""
    policy, number = born[0].policy, born[0].birth.number
    if policy == "ALLOW":
        return
    findings.saw(len(born))
    held = [life for life in born if life.is_born_held]
    started = [life for life in born if not life.is_born_held]
    if len(started) > (0 if others else 1):
        title = f"it started under {policy} while another execution was not over"
        findings.violate(title, _told([*others[:1], *started]))
    if held and policy == "SKIP":
        findings.violate("it waits where its policy skips", _told(held))
    before = [life for life in others if life.released > number]
    if policy == "QUEUE_ONE" and held and len(held) + len(before) > 1:
        findings.violate("more than one waits under QUEUE_ONE", _told([*before, *held]))
    if policy == "CANCEL_PREVIOUS" and held:
        for other in others:
            if not _is_stopped(other, born[0].birth):
                title = "a newer instant came, and the execution before it was not told to stop"
                findings.violate(title, _told([other, *held]))


def _is_stopped(other: Life, birth: Change) -> bool:
    """It is asked to stop, or was over when the new one was committed."""
    for change in other.changes:
        row = change.old if change.new is None else change.new
        if row is not None and row["cancel_requested_at"] is not None:
            return True
        if change.new is None:
            return change.committed_at <= birth.committed_at
    return False


def _check_release(history: History, life: Life, live: Iterable[Life], findings: Findings) -> None:
    findings.saw()
    others = [one for one in live if one is not life and one.released < life.released]
    if others and not _is_allowed_by_now(history, life):
        title = "it was let go while an earlier execution of the job was not over"
        findings.violate(title, _told([*others[:1], life]))


def _is_allowed_by_now(history: History, life: Life) -> bool:
    """Whether its job's policy was ALLOW when it was let go: then nothing stands in its way."""
    let_go = _held_until(life)
    low = history.earlier(let_go, _COMMITTING)
    versions = history.versions.get(life.row["job_id"], [])
    for version, following in pairwise([*versions, None]):
        is_in_force = version is not None and version["valid_from"] <= let_go
        is_replaced = following is not None and following["valid_from"] < low
        if (
            version
            and is_in_force
            and not is_replaced
            and _policy(version["definition"]) == "ALLOW"
        ):
            return True
    return False


def _told(lives: Iterable[Life]) -> Iterator[str]:
    for life in lives:
        yield words.change(life.birth)
        yield from (words.change(one) for one in life.changes[-1:] if one is not life.birth)


def _check_skips(history: History, findings: Findings) -> None:
    """Skipped for an overlap: something of the job was live at that time."""
    spans: dict[UUID, list[tuple[datetime, datetime]]] = defaultdict(list)
    skipped = {row["job_id"] for row in history.facts.skips if row["reason"] == "OVERLAP"}
    for id_, row in history.known.items():
        if row["job_id"] in skipped and row["trigger"] in ("SCHEDULE", "AFTER"):
            final = history.finals.get(id_)
            end = history.facts.read_at if final is None else final["finished_at"]
            seen = history.earlier(row.get("created_at") or row["scheduled_time"], _UNDER_WAY)
            spans[row["job_id"]].append((seen, end))
    for row in history.facts.skips:
        if row["reason"] == "OVERLAP":
            findings.saw()
            at = row["recorded_at"]
            low = history.earlier(at, _UNDER_WAY)
            if not any(seen <= at and low <= end for seen, end in spans[row["job_id"]]):
                title = "skipped for an overlap, and nothing of the job was live"
                findings.violate(title, [words.skip(row)])


def _check_skip_policies(
    history: History, lives: dict[UUID, list[Life]], findings: Findings
) -> None:
    """Where everything may start or wait, nothing is skipped for an overlap, and where one may
    wait, only if one does. All versions with one schedule have one policy."""
    policies = {
        (version["job_id"], version["schedule_version"]): _policy(version["definition"])
        for version in history.facts.job_versions
    }
    waits = {job_id: list(_waits(history, each)) for job_id, each in lives.items()}
    for row in history.facts.skips:
        if row["reason"] != "OVERLAP":
            continue
        policy = policies.get((row["job_id"], row["schedule_version"]))
        if policy in _NEVER_SKIPS:
            findings.violate(f"skipped for an overlap under {policy}", [words.skip(row)])
        elif policy == "QUEUE_ONE" and not _did_wait(history, row, waits.get(row["job_id"], [])):
            title = "skipped for an overlap under QUEUE_ONE, and none waited"
            findings.violate(title, [words.skip(row)])


def _policy(definition: Row) -> str:
    policy: str | None = (definition.get("schedule") or {}).get("overlap_policy")
    return policy or "SKIP"


def _did_wait(history: History, row: Row, waits: list[tuple[datetime, datetime]]) -> bool:
    """Whether something was held for its overlap when the skip was decided, also what came with it.
    The time on a skip is read before what is live: what had let go by then is not seen."""
    at = row["recorded_at"]
    low = history.earlier(at, _COMMITTING)
    return any(low <= until and seen <= at for seen, until in waits)


def _waits(history: History, lives: Iterable[Life]) -> Iterator[tuple[datetime, datetime]]:
    """From when to when each of them that had to was held for its overlap."""
    for life in lives:
        if life.is_born_held:
            yield history.earlier(life.row["created_at"], _UNDER_WAY), _held_until(life)


def _held_until(life: Life) -> datetime:
    """The commit by which it was let go or over; without one it waits still."""
    end = min(life.released, life.death)
    found = (one.committed_at for one in life.changes if one.number == end)
    return next(found, datetime.max.replace(tzinfo=UTC))
