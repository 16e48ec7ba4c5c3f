"""Progress and lines stand under the fence of whoever said them, and end with its hold."""

from chaos.checker.history import History
from chaos.checker.reports import stale_reports
from chaos.stories import begun, judge, lost, titles


def test_what_is_said_under_its_own_hold_is_fine() -> None:
    story, told = begun()
    told.claim(1.1).report(1.2).report(1.3, kind="progress").end(2)
    told.report(2.2)
    verdict = judge(story, "stale-reports-refused")
    assert (verdict.checked, verdict.violations) == (3, ())


def test_nothing_is_written_over_another_fence() -> None:
    story, told = lost()
    told.report(21.15, kind="progress", said=1)
    assert titles(story, "stale-reports-refused") == ["a progress of fence 1 was written under 2"]


def test_nothing_is_kept_of_whoever_lost_it() -> None:
    story, told = lost()
    told.report(20.5, fence=1, said=1)
    assert titles(story, "stale-reports-refused") == []
    told.report(24.2, fence=1, said=1)
    (witness,) = judge(story, "stale-reports-refused").violations
    assert witness.title == "a line of a hold that was taken away, and it was kept"
    assert len(witness.records) == 4


def test_whoever_ended_it_by_its_own_hand_may_bring_its_last_lines_later() -> None:
    story, told = begun()
    told.claim(1.1).leave(2, "RETRY").release(2.1).claim(2.2)
    told.report(4, fence=1, said=1)
    assert titles(story, "stale-reports-refused") == []


def test_a_claim_that_never_was_says_nothing() -> None:
    story, told = begun()
    told.claim(1.1).report(1.2, fence=7, said=7)
    assert titles(story, "stale-reports-refused") == ["a line of a claim that never was"]


def test_words_that_were_refused_are_known_from_the_sink() -> None:
    story, told = lost()
    told.report(1.25, fence=1, said=1)
    assert stale_reports(History(story.facts())) == (0, 0)
    told.tell("done", 24.5, fence=1)
    assert stale_reports(History(story.facts())) == (1, 0)
    told.report(24.6, fence=1, said=1)
    assert stale_reports(History(story.facts())) == (0, 1)
