"""The report of a run: its numbers, and what they are taken from."""

from uuid import UUID

import pytest

from chaos.checker import INVARIANTS, check
from chaos.checker.history import History
from chaos.measures import (
    failovers,
    lateness,
    orphan_recoveries,
    percentile,
    starts,
    takings,
    waits,
)
from chaos.report import render
from chaos.stories import OTHER_WORKER, WORKER, Story, at, five_seconds

NODE = UUID(int=9)


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_a_value_that_was_measured(share: float, value: float) -> None:
    assert percentile(list(range(1, 101)), share) == value


def test_a_percentile_of_one_is_that_one() -> None:
    assert percentile([7.0], 0.5) == percentile([7.0], 0.99) == 7.0


def killed_scheduler() -> Story:
    story = Story()
    job = five_seconds(story)
    story.fire(job, 1).run(1.1)
    story.fault("kill scheduler", "scheduler-1", 1.5, 1.5, id=str(NODE), shards=[5])
    story.fire(job, 2, fired=3.4).run(3.5)
    story.fire(job, 3, fired=3.4).run(3.5)
    return story


def test_failover_counts_from_the_kill_or_the_instant() -> None:
    story = killed_scheduler()
    story.fire(story.jobs[0]["id"], 1.4, fired=2.5)
    found = failovers(History(story.facts()))
    assert found.kills == 1
    assert sorted(found.plain) == pytest.approx([0.4, 1.0, 1.4])


def test_a_failover_beside_a_database_outage_is_told_apart() -> None:
    story = killed_scheduler()
    story.fault("restart database", "", 10, 12)
    found = failovers(History(story.facts()))
    assert (len(found.plain), len(found.in_outage)) == (0, 2)


def test_a_failover_of_any_length_counts_if_it_was_due_soon_after_the_kill() -> None:
    story = killed_scheduler()
    job = story.jobs[0]["id"]
    story.fire(job, 4, fired=50)
    story.fire(job, 13, fired=50)
    found = failovers(History(story.facts()))
    assert sorted(found.plain) == pytest.approx([0.4, 1.4, 46.0])


def test_shards_of_a_killed_scheduler_are_read_from_the_leases_if_need_be() -> None:
    story = killed_scheduler()
    story.faults.clear()
    story.fault("kill scheduler", "scheduler-1", 1.5, 1.5, id=str(NODE))
    free = {"shard": 5, "owner": None, "epoch": 0, "expires_at": None}
    story.lease(1, free, free | {"owner": NODE, "epoch": 1})
    assert len(failovers(History(story.facts())).plain) == 2


def test_orphans_count_from_the_kill_to_the_next_claim() -> None:
    story = Story()
    job = story.job()
    told = story.fire(job, 1).claim(2)
    limited = story.fire(job, 1, limit_keys=["x"]).claim(2)
    story.fault("kill worker", "worker-1", 4, 4, id=str(WORKER))
    told.leave(20, "LOSE").release(20.1).claim(21, OTHER_WORKER)
    limited.leave(20, "LOSE").release(20.1).claim(40, OTHER_WORKER)
    history = History(story.facts())
    found = orphan_recoveries(history)
    assert (found.kills, found.plain, found.in_outage) == (1, [17.0], [])
    assert takings(history).plain == [16.0, 16.0]


def test_lateness_waits_and_starts_are_measured() -> None:
    history = History(killed_scheduler().facts())
    assert sorted(lateness(history)) == pytest.approx([0.05, 0.4, 1.4])
    assert max(waits(history)) == pytest.approx(0.1)
    assert starts(history) == [0, 0, 0]


def test_what_a_change_settles_was_due_at_its_instant() -> None:
    story = Story()
    story.fire(story.job(), 1, fired=1.2, available_at=at(1.2))
    assert lateness(History(story.facts())) == pytest.approx([0.2])


def test_the_report_names_what_fails_and_shows_its_smallest_witness() -> None:
    facts = killed_scheduler().facts()
    text = render(facts, check(facts, {"quiet": 5}))
    lines = text.splitlines()
    assert lines[0] == "chaos: seed 1, 60 s, of which 30 s with faults"
    assert lines[1].startswith("FAILED: instants-once,")
    assert any(line.endswith("checked too seldom") for line in lines)
    assert "instants: 5 expected, 3 fired, 0 skipped, " in lines
    assert "  2 lost, 0 doubled, 0 not due for long enough" in lines
    assert any(line.startswith("instants-once: lost: no outcome of") for line in lines)
    assert any(line.startswith("failover, 1 schedulers killed") for line in lines)
    assert all(name in text for name in INVARIANTS)


def test_the_report_of_an_empty_run_can_be_read() -> None:
    facts = Story().facts()
    assert "0 expected" in render(facts, check(facts, {}))


def test_what_a_resumed_job_makes_up_for_is_not_late() -> None:
    story = Story()
    job = story.job()
    story.version(job, 1.5, status="PAUSED")
    story.version(job, 9, status="ACTIVE")
    story.fire(job, 8, fired=9, available_at=at(9), job_version=3)
    story.fire(job, 10, job_version=3)
    story.fault("kill scheduler", "scheduler-1", 7, 7, id=str(NODE), shards=[5])
    history = History(story.facts())
    assert lateness(history) == pytest.approx([0.05])
    assert failovers(history).plain == pytest.approx([0.05])
