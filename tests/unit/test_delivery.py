"""When a completion callback is tried again, and when it is not."""

from uuid import UUID

import pytest

from foliot.core.delivery import (
    ATTEMPTS_MIN,
    PATIENCE_SECONDS,
    Decision,
    Delivered,
    GivenUp,
    TryAgain,
    decide,
    event_type_of,
    message_id_of,
)
from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.core.states import TERMINAL

DOWN = Failure(ErrorType.HTTP_ERROR, "down", http_status=503)


def after(failure: Failure | None, number: int = 1, age: float = 0.0) -> Decision:
    return decide(failure, number, age, chance=0.5)


def test_success_ends_it() -> None:
    assert after(None, 40, 9 * PATIENCE_SECONDS) == Delivered()


@pytest.mark.parametrize(
    "failure",
    [
        DOWN,
        Failure(ErrorType.HTTP_ERROR, "not there yet", http_status=404),
        Failure(ErrorType.HTTP_ERROR, "who are you", http_status=401),
        Failure(ErrorType.HTTP_ERROR, "moved", http_status=302),
        Failure(ErrorType.TIMEOUT, "slow"),
        Failure(ErrorType.CONNECTION, "nobody", detail="REFUSED"),
        Failure(ErrorType.MISSING_SECRET, "it may be written yet"),
    ],
)
def test_nearly_everything_is_tried_again(failure: Failure) -> None:
    assert after(failure) == TryAgain(5.0)


@pytest.mark.parametrize(
    "failure",
    [
        Failure(ErrorType.TARGET_REFUSED, "may not go there"),
        Failure(ErrorType.HTTP_ERROR, "wants nothing more", http_status=410),
    ],
)
def test_two_answers_are_final(failure: Failure) -> None:
    assert after(failure) == GivenUp()


def test_the_delay_doubles_from_five_seconds_to_an_hour() -> None:
    delays = [after(DOWN, number) for number in range(1, 13)]
    expected = [5.0, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]
    assert delays == [TryAgain(seconds) for seconds in expected]


def test_it_is_given_up_after_a_day() -> None:
    age, number = 0.0, 1
    while isinstance(decision := after(DOWN, number, age), TryAgain):
        age += decision.delay_seconds
        number += 1
    assert PATIENCE_SECONDS - 3600 <= age <= PATIENCE_SECONDS
    assert number == 33


def test_one_that_waited_out_an_outage_of_ours_has_a_few_tries_all_the_same() -> None:
    old = 9 * PATIENCE_SECONDS
    assert isinstance(after(DOWN, ATTEMPTS_MIN - 1, old), TryAgain)
    assert after(DOWN, ATTEMPTS_MIN, old) == GivenUp()


@pytest.mark.parametrize(("asked", "delay"), [(1.0, 5.0), (60.0, 60.0), (1e9, 3600.0), (-1, 5.0)])
def test_a_receiver_may_ask_for_more_time(asked: float, delay: float) -> None:
    busy = Failure(ErrorType.HTTP_ERROR, "", http_status=429, retry_after_seconds=asked)
    assert after(busy) == TryAgain(delay)


def test_a_message_has_an_id_of_its_own_and_a_type_for_each_end() -> None:
    execution_id = ExecutionId(UUID(int=7))
    assert message_id_of(execution_id) == f"{execution_id}-ended"
    assert "." not in message_id_of(execution_id)
    assert {event_type_of(status) for status in TERMINAL} >= {
        "execution.succeeded",
        "execution.failed",
        "execution.timed_out",
        "execution.cancelled",
    }
