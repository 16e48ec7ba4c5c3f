"""What the outside world saw: the sink's records.

All attempts of an execution carry one key, and their fences rise in the order in which the sink
heard them. An older fence may come late only from a hand that had lost its hold through a fault; a
sink that keeps the highest fence refuses it. Whatever succeeded has told its "done" once, under the
fence that succeeded and before its end was written.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import CLOCKS, TAKEN_BY, History, Hold
from chaos.checker.verdict import Findings
from chaos.facts import Effect, Row

# From the end of a hold to the last word of what ran under it.
_LATE: Final = timedelta(seconds=1)
# A hand that was frozen goes on until it learns that it lost: its next heartbeat, and its grace.
_LEARNS_WITHIN: Final = timedelta(seconds=60)


def check_effects_fenced(history: History, findings: Findings) -> None:
    telling = {effect.job for effect in history.facts.effects}
    for id_, effects in history.effects.items():
        findings.saw()
        _check_key(history, id_, effects, findings)
        _check_order(history, id_, effects, findings)
        _check_late(history, id_, effects, findings)
    for row in history.finals.values():
        if row["status"] == "SUCCEEDED" and row["job_name"] in telling:
            _check_done(history, row, history.effects.get(row["id"], []), findings)


def _check_key(history: History, id_: UUID, effects: Sequence[Effect], findings: Findings) -> None:
    row = history.known.get(id_)
    if row is None:
        findings.violate("an effect of an execution that never was", [words.effect(effects[0])])
        return
    told = history.attempts.get(id_) or [history.live.get(id_) or row]
    right = told[0].get("idempotency_key") or str(id_)
    keys = {effect.idempotency_key: effect for effect in effects}
    if len(keys) > 1:
        findings.violate("the attempts of one execution have two keys", _told(keys.values()))
    elif right not in keys:
        findings.violate(f"its key is not {right}", [words.effect(effects[0])])
    claimed = {hold.fence: hold for hold in history.holds.get(id_, [])}
    for effect in effects:
        if claimed and effect.fence not in claimed:
            findings.violate("an effect under a fence that nobody held", [words.effect(effect)])
            return


def _check_order(
    history: History, id_: UUID, effects: Sequence[Effect], findings: Findings
) -> None:
    newest = effects[0]
    for effect in effects:
        if effect.fence >= newest.fence:
            newest = effect
        elif not _is_explained(history, id_, effect):
            title = "an older fence after a newer one, and no fault took the older hold away"
            findings.violate(title, _told([newest, effect]))
            return


def _check_late(history: History, id_: UUID, effects: Sequence[Effect], findings: Findings) -> None:
    """A hand whose hold is over does nothing more, unless its node was struck and cannot know."""
    holds = {hold.fence: hold for hold in history.holds.get(id_, [])}
    for effect in effects:
        hold = holds.get(effect.fence)
        if hold is None or hold.ended is None:
            continue
        seen = history.at(effect.monotonic)
        node = history.node_of.get(hold.worker_id, "")
        begun = hold.claim["claimed_at"]
        if seen > hold.ended.committed_at + _LATE and history.was_spared(begun, seen, node):
            title = "an effect of a hold that was over, on a node that nothing had struck"
            findings.violate(
                title, [words.change(hold.claimed), words.change(hold.ended), words.effect(effect)]
            )
            return


def _is_explained(history: History, id_: UUID, effect: Effect) -> bool:
    """Its hold was taken away, and a fault was at work between its claim and this."""
    hold = next((one for one in history.holds.get(id_, []) if one.fence == effect.fence), None)
    return hold is not None and is_taken_by_fault(history, hold, effect)


def is_taken_by_fault(history: History, hold: Hold, effect: Effect) -> bool:
    """By one of the database or of the node that held it; if that is forgotten, of any."""
    if hold.event not in TAKEN_BY and not _is_ended_as_overdue(history, hold):
        return False
    node = history.node_of.get(hold.worker_id)
    begun, seen = hold.claim["claimed_at"], history.at(effect.monotonic)
    return any(
        history.at(fault.began) <= seen and begun <= history.at(fault.healed) + _LEARNS_WITHIN
        for fault in history.faults
        if node is None or fault.victim in ("", node)
    )


def _is_ended_as_overdue(history: History, hold: Hold) -> bool:
    """Whether it is tried again because its time was over. A node that is frozen cannot say so, or
    stop it: a scheduler does, and the hand goes on when the node does."""
    attempts = history.attempts.get(hold.claim["id"], [])
    errors = [(row["error"] or {}).get("type") for row in attempts if _is_of(row, hold)]
    return hold.event == "RETRY" and errors == ["TIMEOUT"]


def _check_done(history: History, row: Row, effects: Sequence[Effect], findings: Findings) -> None:
    done = [one for one in effects if one.what == "done" and one.fence == row["fence"]]
    if len(done) != 1:
        title = f"it succeeded under fence {row['fence']}, and the sink has {len(done)} of its ends"
        findings.violate(title, [words.attempt(row), *_told(effects)])
        return
    if history.at(done[0].monotonic) > row["finished_at"] + CLOCKS:
        title = "its success was written before the handler came to its end"
        findings.violate(title, [words.attempt(row), words.effect(done[0])])


def _told(effects: Iterable[Effect]) -> list[str]:
    return [words.effect(one) for one in effects]


def refused_by_fence(history: History) -> int:
    """Records that a sink which keeps the highest fence of each execution refuses."""
    refused = 0
    for effects in history.effects.values():
        highest = 0
        for effect in effects:
            refused += effect.fence < highest
            highest = max(highest, effect.fence)
    return refused


def duplicates(history: History) -> Counter[str]:
    """Executions that came to an end more than once, by what became of the earlier holds."""
    found: Counter[str] = Counter()
    for id_, effects in history.effects.items():
        fences = sorted({one.fence for one in effects if one.what == "done"})
        if len(fences) > 1:
            holds = {hold.fence: hold for hold in history.holds.get(id_, [])}
            found.update(_explained(history, holds.get(fence)) for fence in fences[:-1])
    return found


def _explained(history: History, hold: Hold | None) -> str:
    """Who took it away: a rescuer, from a worker that had been silent, or its own worker, because
    the process that ran it was gone."""
    if hold is None or hold.ended is None:
        return "not explained"
    attempts = history.attempts.get(hold.claim["id"], [])
    errors = [row["error"]["type"] for row in attempts if _is_of(row, hold) and row["error"]]
    whose = "its worker was silent" if history.was_silent(hold) else "its process was gone"
    return ", ".join([str(hold.event), *errors, whose])


def _is_of(row: Row, hold: Hold) -> bool:
    return bool(row["fence"] == hold.fence and row["claimed_at"] is not None)
