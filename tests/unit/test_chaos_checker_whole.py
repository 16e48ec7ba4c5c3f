"""Leases, limits, liveness, clocks and quiet: what holds of the system as a whole."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from chaos.checker.leases import SHARDS
from chaos.stories import Story, Told, at, judge, titles

NODE, OTHER = UUID(int=9), UUID(int=10)
FREE: dict[str, Any] = {"shard": 5, "owner": None, "epoch": 0, "expires_at": None}


def lease(owner: UUID | None, epoch: int, ends: float | None, shard: int = 5) -> dict[str, Any]:
    expires_at = None if ends is None else at(ends)
    return {"shard": shard, "owner": owner, "epoch": epoch, "expires_at": expires_at}


def leased(*steps: tuple[float, dict[str, Any]]) -> Story:
    story, before = Story(), FREE
    for seconds, row in steps:
        story.lease(seconds, before, row)
        before = row
    return story


def test_leases_taken_renewed_given_and_taken_over_are_fine() -> None:
    story = leased(
        (1, lease(NODE, 1, 10.9)),
        (4, lease(NODE, 1, 13.9)),
        (5, lease(None, 1, None)),
        (6, lease(OTHER, 2, 15.9)),
        (16, lease(NODE, 3, 25.9)),
        (18, lease(NODE, 3, 27.9)),
    )
    story.fault("kill scheduler", "scheduler-2", 7, 7, id=str(OTHER))
    for name in ("epochs-rise", "stale-lease-refused", "shards-covered"):
        assert titles(story, name, read=28) == []
    assert judge(story, "epochs-rise").checked == 3


@pytest.mark.parametrize(
    ("row", "title"),
    [
        (lease(NODE, 1, 16), "shard 5: its epoch fell from 2 to 1"),
        (lease(OTHER, 2, 16), "shard 5: it has a new owner under the old epoch"),
        (lease(NODE, 3, 16), "shard 5: its epoch rose under the same owner"),
    ],
)
def test_epochs_rise_with_the_owner(row: dict[str, Any], title: str) -> None:
    story = leased((1, lease(NODE, 2, 8)), (9, row))
    assert title in titles(story, "epochs-rise")


def test_an_epoch_has_one_owner_ever() -> None:
    story = leased((1, lease(NODE, 1, 10)), (2, lease(None, 1, None)), (3, lease(OTHER, 1, 12)))
    (witness, *_) = [one for one in judge(story, "epochs-rise").violations if len(one.records) == 2]
    assert witness.title == "shard 5: epoch 1 has two owners"


@pytest.mark.parametrize(
    ("row", "title"),
    [
        (lease(OTHER, 2, 12), "it was taken while its lease had not run out"),
        (lease(NODE, 1, 9), "a renewal made it end earlier"),
        (lease(NODE, 2, 12), "a renewal changed its epoch"),
        (lease(NODE, 1, 20), "it ends later than a lease after its commit"),
    ],
)
def test_nobody_writes_what_another_holds(row: dict[str, Any], title: str) -> None:
    story = leased((1, lease(NODE, 1, 10)), (3, row))
    story.fault("stop scheduler", "scheduler-1", 2, 15, id=str(NODE))
    (witness,) = judge(story, "stale-lease-refused").violations
    assert (witness.title, len(witness.records)) == (f"shard 5: {title}", 1)


def test_nobody_writes_for_a_scheduler_that_is_dead() -> None:
    story = leased((1, lease(NODE, 1, 10)), (9.5, lease(NODE, 1, 19)))
    story.fault("kill scheduler", "scheduler-1", 4, 4, id=str(NODE))
    assert titles(story, "stale-lease-refused") == []
    story.faults[0] = replace(story.faults[0], began=story.faults[0].began - 2)
    assert titles(story, "stale-lease-refused") == [
        "shard 5: written for a scheduler that was dead"
    ]


def test_a_shard_stays_without_an_owner_only_after_a_fault() -> None:
    story = leased((1, lease(NODE, 1, 10)), (40, lease(OTHER, 2, 49)))
    assert titles(story, "shards-covered", read=48) == ["shard 5: nobody had it for 30.0 s"]
    story.fault("kill scheduler", "scheduler-1", 20, 20)
    assert titles(story, "shards-covered", read=48) == []


def test_what_the_nodes_give_back_at_the_end_is_not_missed() -> None:
    story = leased((1, lease(NODE, 1, 10)), (9, lease(None, 1, None)))
    story.sample(9.5)
    assert titles(story, "shards-covered", read=99) == []
    assert judge(story, "shards-covered").checked < SHARDS


def limited(most: int | None = 1, rate: int | None = None) -> tuple[Story, list[Told]]:
    story = Story()
    job = story.job()
    key = f"job:{job}"
    story.limits.append(
        {"key": key, "max_running": most, "rate_count": rate, "rate_seconds": rate and 2.0}
    )
    told = [story.fire(job, number, limit_keys=[key]) for number in (1, 2, 3)]
    return story, told


def test_limits_are_held() -> None:
    story, (first, second, _) = limited()
    first.claim(2).end(3)
    second.claim(3.1)
    verdict = judge(story, "limits-held")
    assert (verdict.checked, verdict.violations) == (2, ())


def test_one_more_than_a_limit_allows_is_found() -> None:
    story, (first, second, _) = limited()
    first.claim(2)
    second.claim(3)
    (witness,) = judge(story, "limits-held").violations
    assert witness.title.startswith("2 ran at once under job:")
    assert len(witness.records) == 2


def test_a_slot_is_free_when_its_holder_is_lost() -> None:
    story, (first, second, _) = limited()
    first.claim(2).leave(3, "LOSE")
    second.claim(3.1)
    assert titles(story, "limits-held") == []


def test_queues_have_limits_too_from_when_they_were_set() -> None:
    story, (first, second, third) = limited(most=None, rate=9)
    story.queues.append({"name": "default", "concurrency_limit": 1})
    story.exchange("limit queue", 2.5, 200)
    first.claim(2)
    second.claim(3)
    assert titles(story, "limits-held") == []
    third.claim(4)
    assert titles(story, "limits-held") == ["2 ran at once under queue:default, at most 1 may"]


def test_a_lowered_limit_stops_nothing_that_runs() -> None:
    story, (first, second, _) = limited()
    story.versions[0]["definition"]["concurrency"] = {"limit": 2}
    first.claim(2)
    second.claim(3)
    assert titles(story, "limits-held") == []


def note_starts(story: Story) -> None:
    (limit,) = story.limits
    story.rate_starts = [
        {"key": limit["key"], "at": change.new["claimed_at"], "started": 1}
        for change in story.changes
        if change.new and change.new["status"] == "RUNNING"
    ]


def test_rates_are_held_in_every_window() -> None:
    story, told = limited(most=None, rate=2)
    for one, seconds in zip(told, (3, 3.5, 5), strict=True):
        one.claim(seconds)
    note_starts(story)
    assert judge(story, "rates-held").checked == 3
    assert titles(story, "rates-held") == []
    story, told = limited(most=None, rate=2)
    for one, seconds in zip(told, (3, 3.5, 4.9), strict=True):
        one.claim(seconds)
    note_starts(story)
    (witness,) = judge(story, "rates-held").violations
    assert len(witness.records) == 3


def test_starts_under_a_rate_are_noted() -> None:
    story, (first, *_) = limited(most=None, rate=2)
    first.claim(3)
    (title,) = titles(story, "rates-held")
    assert title.endswith("and 0 of them are noted")


def test_everything_comes_to_an_end() -> None:
    story = Story()
    story.worker()
    story.fire(story.job(), 1).run(2)
    verdict = judge(story, "no-limbo", read=130)
    assert (verdict.checked, verdict.found) == (2, 1)
    story.workers[0]["last_heartbeat_at"] = at(99)
    assert titles(story, "no-limbo", read=130) == []


@pytest.mark.parametrize("status", ["QUEUED", "PENDING", "RETRYING", "WAITING"])
def test_what_is_due_and_does_not_move_is_in_limbo(status: str) -> None:
    story = Story()
    story.fire(story.job(), 1, status=status)
    assert titles(story, "no-limbo", read=70) == []
    title = f"it is {status} and due, and nothing becomes of it"
    assert titles(story, "no-limbo", read=80) == [title]


def test_what_has_time_is_not_in_limbo() -> None:
    story = Story()
    story.fire(story.job(), 1, available_at=at(500), status="PENDING")
    assert titles(story, "no-limbo", read=400) == []


def test_what_a_full_limit_or_an_earlier_one_holds_is_not_in_limbo() -> None:
    story, (first, second, third) = limited()
    first.claim(2)
    second.row |= {"status": "WAITING", "hold": "LIMIT", "rank": None}
    third.row |= {"status": "WAITING", "hold": "OVERLAP", "rank": None}
    assert titles(story, "no-limbo", read=80) == []
    first.end(3)
    assert len(titles(story, "no-limbo", read=80)) == 1
    assert judge(story, "no-limbo", read=80).violations[0].title.startswith("it is WAITING")


def test_what_runs_on_for_ever_is_in_limbo() -> None:
    story = Story()
    story.fire(story.job(), 1).claim(2)
    assert titles(story, "no-limbo", read=130) == []
    assert titles(story, "no-limbo", read=140) == ["it runs, and nobody ends it"]


def test_a_job_that_nobody_fires_is_in_limbo() -> None:
    story = Story()
    story.job()
    story.jobs[0]["next_run_at"] = at(2)
    assert len(titles(story, "no-limbo", read=45)) == 1


def poisoned(waits: float) -> Story:
    story = Story()
    poison = story.fire(story.job("poison-1"), 1).claim(1.1)
    innocent = story.fire(story.job("tick-1"), 2)
    innocent.claim(2.05 + waits)
    poison.leave(60, "LOSE")
    return story


def test_poison_delays_nobody() -> None:
    assert judge(poisoned(1), "poison-isolated").checked == 2
    assert titles(poisoned(29), "poison-isolated") == []
    assert titles(poisoned(31), "poison-isolated") == ["it waited for 31.0 s behind poison"]


def test_nobody_is_called_poison_for_what_another_did() -> None:
    story = Story()
    told = story.fire(story.job("tick-1"), 1).claim(2).end(3, "FAILED")
    story.letter(told, "POISON")
    assert titles(story, "poison-isolated") == ["an innocent is called poison"]


def test_times_are_the_databases() -> None:
    story = Story()
    story.fault("clock off", "api", 0, 0, seconds=-200)
    told = story.fire(story.job(), 1).run(1.1)
    verdict = judge(story, "clocks-ignored")
    assert verdict.violations == ()
    assert verdict.checked > 5
    story.attempts[0]["started_at"] = at(1.1 - 20)
    assert len(titles(story, "clocks-ignored")) == 1
    story.attempts[0] |= {"started_at": None, "finished_at": at(301)}
    assert sorted(titles(story, "clocks-ignored")) == [
        f"finished_at of attempts lies outside of the run: {at(301)}",
        f"it ended at {at(301)}, committed at {at(1.3)}",
    ]
    assert told.row["fence"] == 1


@pytest.mark.parametrize("seconds", [-20, 20])
def test_a_claim_has_the_time_of_its_commit(seconds: float) -> None:
    story = Story()
    told = story.fire(story.job(), 1)
    told.change(30, status="RUNNING", claimed_at=at(30 + seconds))
    (witness,) = judge(story, "clocks-ignored").violations
    assert witness.title.startswith("claimed_at is ")


def test_a_quiet_run_is_quiet() -> None:
    story = Story()
    for second in range(0, 60, 5):
        story.sample(second)
    verdict = judge(story, "quiet")
    assert (verdict.checked, verdict.violations) == (12, ())


def test_an_outcry_is_told_with_its_line() -> None:
    story = Story()
    story.outcries.append({"node": "api", "line": "Traceback"})
    (witness,) = judge(story, "quiet").violations
    assert witness.lines == ("an outcry of api", "Traceback")


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ({"connections": 99}, "connections grew from 20 to 99"),
        ({"idle_in_transaction_seconds": 9.0}, "idle in a transaction for 9.0 s"),
        (
            {"nodes": {"worker-1": {"pid": 1, "rss_bytes": 900_000_000, "descriptors": 30}}},
            "rss_bytes of worker-1 grew by 850000000",
        ),
        (
            {"nodes": {"worker-1": {"pid": 1, "rss_bytes": 1, "descriptors": 300}}},
            "descriptors of worker-1 grew by 270",
        ),
    ],
)
def test_what_grows_is_found(values: dict[str, Any], title: str) -> None:
    story = Story()
    for second in range(0, 60, 5):
        story.sample(second)
    story.sample(60, **values)
    assert titles(story, "quiet") == [title]


def test_a_new_process_begins_anew() -> None:
    story = Story()
    for second in range(0, 60, 5):
        story.sample(second)
    grown = {"worker-1": {"pid": 2, "rss_bytes": 900_000_000, "descriptors": 30}}
    story.sample(60, nodes=grown)
    assert titles(story, "quiet") == []


def test_a_lease_is_taken_only_from_a_scheduler_that_was_struck() -> None:
    story = leased((1, lease(NODE, 1, 10)), (12, lease(OTHER, 2, 21)))
    story.fault("restart database", "", 2, 11)
    story.fault("kill scheduler", "scheduler-3", 2, 2, id=str(UUID(int=77)))
    title = "shard 5: taken from a scheduler that nothing had struck"
    assert titles(story, "stale-lease-refused") == [title]
    story.fault("stop scheduler", "scheduler-1", 2, 15, id=str(NODE))
    assert titles(story, "stale-lease-refused") == []
    story.faults[-1] = replace(story.faults[-1], detail={})
    assert titles(story, "stale-lease-refused") == []
    story.faults[-1] = replace(story.faults[-1], kind="reset")
    assert titles(story, "stale-lease-refused") == [title]


def test_leases_neither_come_nor_go() -> None:
    story = leased((1, lease(NODE, 1, 10)))
    story.lease(2, lease(NODE, 1, 10), None)
    assert titles(story, "epochs-rise") == ["the lease of shard 5 came or went"]


def test_clocks_that_are_right_show_nothing() -> None:
    story = Story()
    story.fault("clock off", "api", 0, 0, seconds=0)
    story.fire(story.job(), 1).run(1.1)
    assert judge(story, "clocks-ignored").checked == 0


def test_no_instant_has_an_outcome_before_its_time() -> None:
    story = Story()
    job = story.job()
    story.fire(job, 9, fired=8.9, status="PENDING")
    story.skip(job, 3, 4, "MISFIRE", recorded_at=at(3.9))
    assert sorted(titles(story, "clocks-ignored")) == [
        "it fired before its instant",
        "it was skipped before its instant",
    ]
