"""Who does not answer is left alone for a while, and asked again by one."""

from foliot.core.breaker import (
    CALM,
    FAILURES_MIN,
    PAUSE_SECONDS_MAX,
    PAUSE_SECONDS_MIN,
    WINDOW_SECONDS,
    Breaker,
    Go,
    Wait,
    ask,
    failed,
    gave_up,
    succeeded,
)


def fail(breaker: Breaker, times: int, now: float = 100.0) -> Breaker:
    for _ in range(times):
        breaker = failed(breaker, now, was_probe=False)
    return breaker


OPEN = fail(CALM, FAILURES_MIN)
PROBE_AT = 100.0 + PAUSE_SECONDS_MIN


def probe(breaker: Breaker, now: float) -> Breaker:
    decision = ask(breaker, now)
    assert isinstance(decision, Go)
    assert decision.is_probe
    return decision.breaker


def test_who_answers_is_called_and_nothing_is_remembered() -> None:
    assert ask(CALM, 5.0) == Go(CALM)
    assert succeeded(CALM) is CALM


def test_a_few_failures_are_no_outage() -> None:
    shaky = fail(CALM, FAILURES_MIN - 1)
    assert isinstance(ask(shaky, 101.0), Go)
    assert not shaky.is_calm


def test_enough_failures_stop_all_calls_until_a_pause_is_over() -> None:
    decision = ask(OPEN, 100.5)
    assert isinstance(decision, Wait)
    assert decision.seconds == PAUSE_SECONDS_MIN - 0.5
    assert (decision.outage.failures, decision.outage.since) == (FAILURES_MIN, 100.0)


def test_failures_that_lie_far_apart_do_not_add_up() -> None:
    shaky = fail(CALM, FAILURES_MIN - 1)
    assert isinstance(ask(failed(shaky, 101.0 + WINDOW_SECONDS, was_probe=False), 200.0), Go)


def test_who_answers_more_often_than_not_is_called_on() -> None:
    breaker = failed(CALM, 100.0, was_probe=False)
    for _ in range(40):
        breaker = succeeded(breaker)
    assert isinstance(ask(fail(breaker, 38), 101.0), Go)
    assert isinstance(ask(fail(breaker, 39), 101.0), Wait), "half of them failed"


def test_after_the_pause_one_goes_out_and_the_others_wait_for_it() -> None:
    probing = probe(OPEN, PROBE_AT)
    waiting = ask(probing, PROBE_AT)
    assert isinstance(waiting, Wait)
    assert waiting.seconds == PAUSE_SECONDS_MIN


def test_an_answer_closes_it() -> None:
    assert succeeded(probe(OPEN, PROBE_AT)) == CALM
    assert succeeded(OPEN) == CALM, "also one to a call that was under way before"


def test_each_failed_probe_doubles_the_pause_up_to_a_minute() -> None:
    breaker, now, pauses = OPEN, PROBE_AT, []
    for _ in range(8):
        breaker = failed(probe(breaker, now), now, was_probe=True)
        decision = ask(breaker, now)
        assert isinstance(decision, Wait)
        pauses.append(decision.seconds)
        now += decision.seconds
    assert pauses == [4, 8, 16, 32, 60, 60, 60, 60]
    assert breaker.outage is not None
    assert breaker.outage.since == 100.0
    assert breaker.outage.failures == FAILURES_MIN + 8
    assert max(pauses) == PAUSE_SECONDS_MAX


def test_what_was_under_way_when_it_opened_makes_no_pause_longer() -> None:
    later = failed(OPEN, 101.5, was_probe=False)
    assert isinstance(ask(later, PROBE_AT), Go)


def test_a_probe_that_was_stopped_leaves_the_way_to_the_next() -> None:
    stopped = gave_up(probe(OPEN, PROBE_AT), was_probe=True)
    probe(stopped, PROBE_AT)
    assert gave_up(CALM, was_probe=False) is CALM
    other = gave_up(probe(OPEN, PROBE_AT), was_probe=False)
    assert isinstance(ask(other, PROBE_AT), Wait), "only its own end frees the probe's place"
