"""An outage of the database that is longer than a worker may be silent buries nobody who lives."""

from uuid import UUID

from chaos.facts import LONG_OUTAGE
from chaos.nemesis import long_outages
from chaos.stories import WORKER, Story, at, judge, titles

TITLE = "worker-1.1 could not write for a while, and was taken for dead"


def away(heard: float = 59) -> Story:
    """The database is away from 10 to 28; the worker is heard of for the last time at `heard`."""
    story = Story()
    story.worker()
    story.workers[0]["last_heartbeat_at"] = at(heard)
    story.fault(LONG_OUTAGE, "", 10, 28)
    return story


def test_who_is_heard_again_is_forgiven() -> None:
    verdict = judge(away(), "outages-forgiven")
    assert (verdict.checked, verdict.violations) == (1, ())


def test_who_is_never_heard_again_was_taken_for_dead() -> None:
    (witness,) = judge(away(9), "outages-forgiven").violations
    assert witness.title == TITLE
    assert len(witness.records) == 2


def test_harm_to_that_very_node_explains_it() -> None:
    story = away(9)
    story.fault("stop worker", "worker-2", 12, 30)
    story.fault("reset", "worker-1", 29, 29)
    story.fault("kill host", "worker-1", 9, 9)
    assert titles(story, "outages-forgiven") == [TITLE]
    story.fault("kill worker", "worker-1", 29, 29, id=str(WORKER))
    verdict = judge(story, "outages-forgiven")
    assert (verdict.checked, verdict.violations) == (0, ())


def test_who_was_gone_before_or_came_later_is_passed_over() -> None:
    story = away(1)
    story.worker(UUID(int=0xCC), "worker-1.2")
    story.workers[-1]["registered_at"] = at(29)
    verdict = judge(story, "outages-forgiven")
    assert (verdict.checked, verdict.violations) == (0, ())


def test_a_short_outage_is_no_such_thing() -> None:
    story = away(9)
    story.faults.clear()
    story.fault("restart database", "", 10, 12)
    assert judge(story, "outages-forgiven").checked == 0


def test_one_that_did_not_come_about_is_nothing_to_forgive() -> None:
    """As when the table could not be locked."""
    story = away(9)
    story.faults.clear()
    story.fault(LONG_OUTAGE, "", 10, 13, how="locked")
    assert judge(story, "outages-forgiven").checked == 0


def times(seconds: float, intensity: float = 1) -> list[float]:
    return [after for after, _ in long_outages(7, seconds, intensity)]


def test_a_short_run_has_none_and_a_long_one_several() -> None:
    assert times(80) == []
    assert len(times(300)) == 1
    assert len(times(1200)) == 5
    assert times(1200)[:1] == times(300)
    assert times(600, intensity=2) == [after / 2 for after in times(1200)]
