"""A history in which all is well holds everywhere; one in which nothing happened holds nowhere."""

from uuid import UUID

from chaos.checker import INVARIANTS, PER_SECOND, check, demands
from chaos.checker.verdict import LINES_MAX, Findings, Verdict, Witness
from chaos.facts import LONG_OUTAGE
from chaos.stories import OTHER_WORKER, Story, at, five_seconds


def healthy() -> Story:
    """A bit of everything, as it should be."""
    story = Story()
    story.worker()
    story.worker(OTHER_WORKER, "worker-2.1")
    job = five_seconds(story, retry_policy={"max_attempts": 1})
    for second in (1, 2, 3):
        story.fire(job, second).run(second + 0.1)
    story.skip(job, 4, 4, "OVERLAP", recorded_at=at(4.05))
    lost = story.fire(job, 5).claim(5.1).tell("begun", 5.2).report(5.2)
    story.workers[0]["last_heartbeat_at"] = at(5)
    story.fault("kill worker", "worker-1", 5.3, 5.3, id=str(UUID(int=0xAA)))
    lost.leave(21, "LOSE", run_alone=True).release(21.5).claim(22, OTHER_WORKER)
    lost.tell("begun", 22.1).tell("done", 22.2).end(22.3)
    asked = story.fire(job, 6, trigger="ENQUEUE", limit_keys=[f"job:{job}"])
    asked.claim(6.2).change(6.4, cancel_requested_at=at(6.4)).tell("begun", 6.3)
    asked.end(7, "CANCELLED")
    known = {"key": "k", "execution_id": asked.id, "job_id": job}
    story.exchange("enqueue", 5.9, 202, **known)
    story.exchange("cancel", 6.35, 202, execution_id=asked.id)
    once = {"max_attempts": 1}
    hanging = story.job("hanging", schedule={"type": "MANUAL"}, retry_policy=once)
    doomed = story.fire(hanging, 6, trigger="ENQUEUE").claim(6.1).tell("failing", 6.3)
    doomed.end(6.4, "FAILED", error={"type": "X"})
    story.exchange("enqueue", 5.9, None, job_id=hanging)
    story.letter(doomed, "EXHAUSTED")
    story.limits.append(
        {"key": f"job:{job}", "max_running": 2, "rate_count": 3, "rate_seconds": 2.0}
    )
    story.rate_starts.append({"key": f"job:{job}", "at": at(6.2), "started": 1})
    free = {"shard": 5, "owner": None, "epoch": 0, "expires_at": None}
    held = free | {"owner": UUID(int=9), "epoch": 1, "expires_at": at(11)}
    story.lease(1.5, free, held)
    story.lease(4, held, held | {"expires_at": at(13.9)})
    story.gate(7.5, paused=True)
    story.gate(7.9, paused=False)
    story.worker(UUID(int=0xCC), "worker-3.1")
    story.fault(LONG_OUTAGE, "", 30, 48)
    story.sample(1)
    story.sample(10)
    story.fault("clock off", "api", 0, 0, seconds=-200)
    return story


def test_a_history_in_which_all_is_well_holds_everywhere() -> None:
    verdicts = check(healthy().facts(), dict.fromkeys(INVARIANTS, 1))
    assert {one.name: one.violations for one in verdicts if not one.ok} == {}
    assert all(one.checked > 0 for one in verdicts)


def test_a_run_in_which_nothing_happened_fails_everywhere() -> None:
    verdicts = check(Story().facts(), demands(300))
    assert [one.name for one in verdicts if one.ok] == []
    assert [one.found for one in verdicts] == [0] * len(INVARIANTS)


def test_every_invariant_is_demanded_and_more_of_a_longer_run() -> None:
    assert PER_SECOND.keys() == INVARIANTS.keys()
    assert [name for name, count in demands(0).items() if count < 1] == ["outages-forgiven"]
    assert [demands(seconds)["outages-forgiven"] for seconds in (80, 300, 1200)] == [0, 1, 4]
    assert demands(600)["instants-once"] == 10 * demands(60)["instants-once"]
    assert [demands(seconds)["shards-covered"] for seconds in (60, 600)] == [32 + 6, 32 + 60]
    assert [demands(seconds)["poison-isolated"] for seconds in (60, 600)] == [60, 600]


def test_the_smallest_witnesses_are_kept_and_come_first() -> None:
    findings = Findings()
    for size in (9, 5, 7, *range(10, 30), 1, 3):
        findings.violate(f"of {size}", ["record"] * size)
    verdict = findings.verdict("x", 0)
    assert [len(one.records) for one in verdict.violations[:3]] == [1, 3, 5]
    assert verdict.found == 25
    assert len(verdict.violations) == 10


def test_a_witness_fits_on_fifteen_lines() -> None:
    witness = Witness("title", tuple(f"record {number}" for number in range(99)))
    assert len(witness.lines) == LINES_MAX
    assert witness.lines[-1] == "and 86 more"
    assert Witness("title", ("a",) * 14).lines[-1] == "a"


def test_checked_too_seldom_is_no_pass() -> None:
    assert not Verdict("x", 4, 5, ()).ok
    assert Verdict("x", 5, 5, ()).ok
    assert not Verdict("x", 5, 5, (Witness("bad", ()),), 1).ok


def test_facts_that_make_no_sense_fail_what_reads_them_and_nothing_else() -> None:
    story = healthy()
    story.letters[0]["total_attempts"] = None
    story.attempts[0]["claimed_at"] = "noon"
    verdicts = {one.name: one for one in check(story.facts(), {})}
    assert verdicts["never-early"].violations[0].title.startswith("it cannot be checked: TypeError")
    assert verdicts["never-early"].violations[0].records
    assert verdicts["epochs-rise"].ok
