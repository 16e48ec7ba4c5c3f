"""One hand at a time: claims of an execution follow each other, each under the next fence, and
whoever has lost one can no longer end it."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History, Hold
from chaos.checker.verdict import Findings
from chaos.facts import Change, Row

# Executions that an HTTP target goes on with are in these hands.
REMOTE: Final = UUID("00000000-0000-8000-8000-00000000ca11")
# By the beginning of their kinds: what can silence a worker for good, or for the 15 s after which
# it is dead. A connection that is cut (reset, lose commit) is tried anew after 0.1 s.
SILENCING: Final = ("kill worker", "stop worker", "end worker", "black hole", "strand")
_BEAT: Final = timedelta(seconds=5)
# After these, history has a row of the attempt; the others give it back.
_RECORDED: Final = frozenset({"END", "RETRY", "LOSE"})


def check_one_claim_at_a_time(history: History, findings: Findings) -> None:
    for id_, holds in history.holds.items():
        findings.saw()
        for place, hold in enumerate(holds, 1):
            if hold.fence != place:
                title = f"claim {place} has fence {hold.fence}"
                findings.violate(title, [words.change(one.claimed) for one in holds[:place]])
                break
        for before, after in pairwise(holds):
            if before.ended is None or before.ended.number > after.claimed.number:
                title = "claimed while another claim of it had not ended"
                records = [before.claimed, after.claimed, *filter(None, [before.ended])]
                findings.violate(title, map(words.change, records))
        _check_times(history.attempts.get(id_, []), findings)
        _check_hands(history.changes[id_], findings)
    _check_burials(history, findings)


def _check_burials(history: History, findings: Findings) -> None:
    """A worker that registers anew under the name of its start lives, and was taken for dead. What
    it held was another's then; only what silenced that very node explains it, no outage of the
    database and no harm to one of its connections or processes.
    """
    lives: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(history.facts.workers, key=lambda row: row["registered_at"]):
        if row["id"] != REMOTE:
            lives[row["name"]].append(row)
    for name, rows in lives.items():
        node = name.rpartition(".")[0]
        for before, after in pairwise(rows):
            # A heartbeat that a stall held up is written when it is over.
            low = history.earlier(before["last_heartbeat_at"], _BEAT)
            high = after["registered_at"]
            if not silenced(history, node, low, high):
                title = f"{name} lived and was taken for dead"
                findings.violate(title, [words.worker(before), words.worker(after)])


def silenced(history: History, node: str, low: datetime, high: datetime) -> bool:
    """Whether, at some moment between these, something kept the node from being heard."""
    return any(one.kind.startswith(SILENCING) for one in history.faults_of(node, low, high))


def _check_times(attempts: list[Row], findings: Findings) -> None:
    """Attempts are numbered from 1 without a gap and do not overlap in time."""
    ran = sorted((row for row in attempts if row["claimed_at"]), key=lambda row: row["fence"])
    for number, row in enumerate(ran, 1):
        if row["attempt_number"] != number:
            title = f"attempt {number} has the number {row['attempt_number']}"
            findings.violate(title, map(words.attempt, ran[: number + 1]))
            break
    for before, after in pairwise(ran):
        if before["finished_at"] > after["claimed_at"]:
            title = "an attempt was claimed before the one before it had ended"
            findings.violate(title, [words.attempt(before), words.attempt(after)])


def _check_hands(changes: list[Change], findings: Findings) -> None:
    """While it runs it stays in the same hands, or goes to those of whom its worker called."""
    for change in changes:
        old, new = change.old, change.new
        if old is None or new is None or old["status"] != "RUNNING" or new["status"] != "RUNNING":
            continue
        moved = new["worker_id"] != old["worker_id"] and new["worker_id"] != REMOTE
        if moved or new["fence"] != old["fence"]:
            findings.violate("it changed hands while it ran", [words.change(change)])


def check_stale_end_refused(history: History, findings: Findings) -> None:
    """Whoever lost it ends nothing: history has the end of each hold under its own fence and
    worker, once, and none of a hold that was taken away before."""
    for id_, holds in history.holds.items():
        attempts = history.attempts.get(id_, [])
        findings.saw(sum(map(history.was_taken, holds)))
        by_fence: dict[int, list[Row]] = defaultdict(list)
        for row in attempts:
            by_fence[row["fence"]].append(row)
        for hold in holds:
            ran = [row for row in by_fence[hold.fence] if row["claimed_at"] is not None]
            for title in _wrong_end(hold, ran):
                records = [words.change(hold.claimed)]
                records += [] if hold.ended is None else [words.change(hold.ended)]
                findings.violate(title, [*records, *map(words.attempt, ran)])
        known = {hold.fence for hold in holds}
        for row in attempts:
            if row["claimed_at"] is not None and row["fence"] not in known:
                findings.violate("an end of a claim that never was", [words.attempt(row)])


def _wrong_end(hold: Hold, ran: list[Row]) -> Iterator[str]:
    wanted = 1 if hold.event in _RECORDED else 0
    if len(ran) > wanted:
        yield f"history has {len(ran)} ends of a hold that ended with {hold.event}"
    elif len(ran) < wanted:
        yield f"history has no end of a hold that ended with {hold.event}"
    for row in ran:
        if row["worker_id"] not in (hold.worker_id, REMOTE):
            yield "it was ended in the name of a worker that did not hold it"
        if row["claimed_at"] != hold.claim["claimed_at"]:
            yield "it was ended with the time of another claim"
        if hold.event in ("RETRY", "LOSE") and row["final"]:
            yield "it is over, and goes on"
        if hold.ended is not None and row["finished_at"] > hold.ended.committed_at:
            yield "its end is later than the change that ended it"


def stale_ends(history: History) -> tuple[int, int]:
    """Of holds that were taken from a worker whose process lived on, as one that was frozen or cut
    off: how many handlers came to an end that was refused, and how many ends were accepted."""
    killed = {
        str(fault.detail.get("id")) for fault in history.faults if fault.kind.startswith("kill")
    }
    refused = accepted = 0
    for id_, holds in history.holds.items():
        taken = {
            hold.fence
            for hold in holds
            if history.was_taken(hold) and str(hold.worker_id) not in killed
        }
        if not taken:
            continue
        ended = {one.fence for one in history.effects.get(id_, []) if one.what == "done"}
        won = {row["fence"] for row in history.attempts.get(id_, []) if _won(row)}
        accepted += len(taken & won)
        refused += len(taken & ended - won)
    return refused, accepted


def _won(row: Row) -> bool:
    return bool(row["status"] == "SUCCEEDED")
