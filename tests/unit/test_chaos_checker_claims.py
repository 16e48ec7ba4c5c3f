"""Claims, fences, effects and the path of an execution: one hand at a time, one story."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from chaos.checker.claims import stale_ends
from chaos.checker.effects import duplicates, refused_by_fence
from chaos.checker.history import History
from chaos.stories import OTHER_WORKER, WORKER, Story, Told, at, begun, judge, lost, titles

NAMES = (
    "one-claim-at-a-time",
    "stale-end-refused",
    "effects-fenced",
    "legal-path",
    "terminal-is-final",
    "never-early",
    "deadlines-kept",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_lost_hold_that_another_took_up_is_fine(name: str) -> None:
    story, _ = lost()
    verdict = judge(story, name)
    assert verdict.violations == ()
    assert verdict.checked > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("event", ["HAND_BACK", "SNOOZE", "HOLD", "RETRY"])
def test_whatever_way_it_goes_on_is_fine(name: str, event: str) -> None:
    story, told = begun()
    told.claim(1.1).leave(2, event, delay=1).release(3.1).run(4)
    assert titles(story, name) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("event", ["SNOOZE", "RETRY"])
def test_what_is_cancelled_between_two_attempts_is_fine(name: str, event: str) -> None:
    story, told = begun()
    told.claim(1.1).leave(2, event, delay=5)
    told.end(3, "CANCELLED", started_at=None)
    assert titles(story, name) == []


def test_fences_rise_by_one() -> None:
    story, told = begun()
    told.claim(1.1).leave(2, "HAND_BACK").release(2.1)
    told.row["fence"] = 2
    told.claim(3)
    (witness, *_) = judge(story, "one-claim-at-a-time").violations
    assert witness.title == "claim 2 has fence 3"
    assert len(witness.records) == 2


def test_a_claim_beside_a_claim_is_found() -> None:
    story, told = begun()
    told.claim(1.1).claim(2, OTHER_WORKER).end(3)
    found = titles(story, "one-claim-at-a-time")
    assert "it changed hands while it ran" in found
    assert "claimed while another claim of it had not ended" in found


def test_a_worker_may_not_take_what_another_runs() -> None:
    story, told = begun()
    told.claim(1.1).change(2, worker_id=OTHER_WORKER).end(3)
    assert titles(story, "one-claim-at-a-time") == ["it changed hands while it ran"]


def test_attempts_do_not_overlap_and_have_no_gap() -> None:
    story, _ = lost()
    story.attempts[0]["finished_at"] = at(21.05)
    story.attempts[1]["attempt_number"] = 3
    assert sorted(titles(story, "one-claim-at-a-time")) == [
        "an attempt was claimed before the one before it had ended",
        "attempt 2 has the number 3",
    ]


def stale(story: Story, told: Told) -> None:
    row = dict(story.attempts[0]) | {"finished_at": at(20.5), "status": "SUCCEEDED"}
    story.attempts.append(row)
    assert told.row["fence"] == 2


def in_anothers_name(story: Story, _: Told) -> None:
    story.attempts[1]["worker_id"] = WORKER


def of_no_claim(story: Story, _: Told) -> None:
    story.attempts.append(story.attempts[1] | {"fence": 7, "final": False})


def nowhere(story: Story, _: Told) -> None:
    del story.attempts[0]


def of_another_claim(story: Story, _: Told) -> None:
    story.attempts[1]["claimed_at"] = at(20.5)


def over_and_goes_on(story: Story, _: Told) -> None:
    story.attempts[0]["final"] = True


@pytest.mark.parametrize(
    ("bend", "title"),
    [
        (stale, "history has 2 ends of a hold that ended with LOSE"),
        (in_anothers_name, "it was ended in the name of a worker that did not hold it"),
        (of_no_claim, "an end of a claim that never was"),
        (nowhere, "history has no end of a hold that ended with LOSE"),
        (of_another_claim, "it was ended with the time of another claim"),
        (over_and_goes_on, "it is over, and goes on"),
    ],
)
def test_whoever_lost_it_cannot_end_it(bend: Callable[[Story, Told], None], title: str) -> None:
    story, told = lost()
    bend(story, told)
    verdict = judge(story, "stale-end-refused")
    assert verdict.violations[0].title == title
    assert len(verdict.violations[0].lines) <= 5


def test_a_hand_that_lost_it_is_refused_by_the_fence() -> None:
    story, told = lost()
    told.tell("done", 24.5, fence=1)
    assert titles(story, "effects-fenced") == []
    history = History(story.facts())
    assert refused_by_fence(history) == 1
    assert stale_ends(history) == (1, 0)
    story.attempts[0]["status"] = "SUCCEEDED"
    assert stale_ends(History(story.facts())) == (0, 1)
    assert duplicates(history) == {"LOSE, its worker was silent": 1}
    story.workers[0]["last_heartbeat_at"] = at(19)
    history = History(story.facts())
    assert duplicates(history) == {"LOSE, its process was gone": 1}
    story.attempts[0]["error"] = {"type": "EXIT_CODE"}
    explained = duplicates(History(story.facts()))
    assert explained == {"LOSE, EXIT_CODE, its process was gone": 1}
    assert stale_ends(history) == (0, 0)


def test_who_was_killed_can_no_longer_be_refused() -> None:
    story, told = lost()
    told.tell("done", 1.3, fence=1)
    story.fault("kill worker", "worker-1", 2, 2, id=str(WORKER))
    assert stale_ends(History(story.facts())) == (0, 0)


def test_an_older_fence_needs_a_fault_to_come_late() -> None:
    story, told = lost()
    told.tell("done", 24.5, fence=1)
    story.faults.clear()
    title = "an older fence after a newer one, and no fault took the older hold away"
    (witness, _) = judge(story, "effects-fenced").violations
    assert witness.title == title
    assert len(witness.records) == 2


@pytest.mark.parametrize(
    ("kind", "victim", "right"),
    [
        ("kill worker", "worker-2", False),
        ("kill scheduler", "scheduler-1", False),
        ("lose commit", "worker-1", True),
        ("restart database", "", True),
    ],
)
def test_only_the_database_or_the_node_that_held_it_explains_it(
    kind: str, victim: str, right: bool
) -> None:
    story, told = lost()
    told.tell("done", 24.5, fence=1)
    story.faults.clear()
    story.fault(kind, victim, 3, 3)
    title = "an older fence after a newer one, and no fault took the older hold away"
    assert (title in titles(story, "effects-fenced")) is not right


@pytest.mark.parametrize(
    ("error", "frozen", "right"),
    [
        ("TIMEOUT", "worker-1", True),
        ("TIMEOUT", "worker-2", False),
        ("HANDLER_ERROR", "worker-1", False),
    ],
)
def test_what_others_ended_because_its_time_was_over_may_come_late(
    error: str, frozen: str, right: bool
) -> None:
    story, told = begun()
    told.claim(1.1).tell("begun", 1.2)
    story.fault("stop worker", frozen, 1.3, 18)
    told.leave(9, "RETRY")
    story.attempts[0]["error"] = {"type": error}
    told.release(9.1).claim(9.2, OTHER_WORKER).tell("begun", 9.3).tell("done", 9.4).end(9.5)
    told.tell("cancelled", 18.1, fence=1)
    title = "an older fence after a newer one, and no fault took the older hold away"
    assert (title in titles(story, "effects-fenced")) is not right


def test_of_a_worker_that_is_forgotten_any_fault_may_be_the_one() -> None:
    story, told = lost()
    told.tell("done", 24.5, fence=1)
    story.workers.clear()
    story.faults.clear()
    story.fault("kill worker", "worker-2", 3, 3)
    assert titles(story, "effects-fenced") == []


def test_an_older_fence_of_what_nobody_took_is_never_right() -> None:
    story, told = lost()
    told.tell("done", 24.5, fence=1)
    story.changes[2] = replace(
        story.changes[2], new={**(story.changes[2].new or {}), "status": "RETRYING"}
    )
    assert len(titles(story, "effects-fenced")) == 1


@pytest.mark.parametrize(
    ("told_more", "title"),
    [
        ([("done", {"idempotency_key": "x"})], "the attempts of one execution have two keys"),
        ([("failing", {"fence": 9})], "an effect under a fence that nobody held"),
        ([("done", {})], "it succeeded under fence 2, and the sink has 2 of its ends"),
    ],
)
def test_effects_tell_one_story(told_more: list[tuple[str, dict[str, Any]]], title: str) -> None:
    story, told = lost()
    for what, values in told_more:
        told.tell(what, 21.25, **values)
    assert title in titles(story, "effects-fenced")


def test_what_succeeded_has_told_its_end_before_it_was_written() -> None:
    story, told = begun()
    told.claim(1.1).tell("begun", 1.2).end(1.5)
    title = "it succeeded under fence 1, and the sink has 0 of its ends"
    assert titles(story, "effects-fenced") == [title]
    told.tell("done", 2)
    assert titles(story, "effects-fenced") == [
        "its success was written before the handler came to its end"
    ]


def test_a_job_that_tells_the_sink_nothing_is_passed_over() -> None:
    story, told = begun()
    told.claim(1.1).end(1.5)
    assert judge(story, "effects-fenced").violations == ()


def test_an_effect_of_nothing_is_found() -> None:
    story, told = begun()
    told.run(1.1)
    story.changes, story.attempts = [], []
    title = "an effect of an execution that never was"
    assert titles(story, "effects-fenced") == [title]


def test_nothing_is_claimed_before_its_time() -> None:
    story, told = begun()
    told.row["available_at"] = at(5)
    told.claim(4.9)
    (witness,) = judge(story, "never-early").violations
    assert (witness.title, len(witness.records)) == ("claimed before its time", 1)


def test_history_has_nothing_that_was_claimed_before_its_time() -> None:
    story, told = begun()
    told.run(1.1)
    story.attempts[0]["available_at"] = at(2)
    assert titles(story, "never-early") == ["claimed before its time"]


def test_nothing_starts_after_its_deadline() -> None:
    story, told = begun()
    told.row["start_by"] = at(5)
    told.claim(5.5).end(6)
    assert titles(story, "deadlines-kept") == []
    story, told = begun()
    told.row["start_by"] = at(5)
    told.claim(7).end(8)
    assert titles(story, "deadlines-kept") == [f"it started after its start deadline {at(5)}"]


def test_nothing_runs_past_its_timeout_unless_its_worker_was_struck() -> None:
    story, told = begun()
    told.claim(1.1).end(100)
    assert titles(story, "deadlines-kept") == ["it ran for 98.9 s of 62"]
    story.fault("stop worker", "worker-2", 60, 80)
    assert len(titles(story, "deadlines-kept")) == 1
    story.fault("stop worker", "worker-1", 60, 80)
    assert titles(story, "deadlines-kept") == []


def test_a_worker_that_lives_is_not_taken_for_dead() -> None:
    story, told = begun()
    told.run(2)
    story.worker(UUID(int=0xCC), "worker-1.1")
    story.workers[0]["last_heartbeat_at"] = at(20)
    story.workers[-1]["registered_at"] = at(40)
    story.fault("restart database", "", 18, 39)
    story.fault("stop worker", "worker-2", 18, 39)
    for kind in ("reset", "lose commit", "slow network", "kill host"):
        story.fault(kind, "worker-1", 19, 39)
    (witness,) = judge(story, "one-claim-at-a-time").violations
    assert witness.title == "worker-1.1 lived and was taken for dead"
    assert len(witness.records) == 2
    story.fault("stop worker", "worker-1", 19, 39)
    assert titles(story, "one-claim-at-a-time") == []


def test_a_hand_whose_hold_is_over_does_nothing_more() -> None:
    story, told = begun()
    told.claim(1.1).tell("begun", 1.2).leave(2, "LOSE", run_alone=True).release(2.1)
    told.tell("done", 5)
    (witness,) = judge(story, "effects-fenced").violations
    title = "an effect of a hold that was over, on a node that nothing had struck"
    assert (witness.title, len(witness.records)) == (title, 3)
    story.fault("stop worker", "worker-2", 1.5, 4)
    assert titles(story, "effects-fenced") == [title]
    story.fault("stop worker", "worker-1", 1.5, 4)
    assert titles(story, "effects-fenced") == []


def test_the_key_is_the_executions_own() -> None:
    story, told = begun()
    told.claim(1.1).tell("begun", 1.2, idempotency_key="mine").end(2, "FAILED")
    assert titles(story, "effects-fenced") == [f"its key is not {told.id}"]
    story.attempts[0]["idempotency_key"] = "mine"
    assert titles(story, "effects-fenced") == []
