"""The quick histogram shows what the library's own would show."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from foliot.runtime.tallies import TallyHistogram

BOUNDS = (0.005, 0.1, 1.0, 60.0)
VALUES = st.one_of(st.sampled_from(BOUNDS), st.floats(0, 100), st.floats(-1, 0))


def shown(registry: CollectorRegistry) -> list[str]:
    """Without the time of making, which only the library's own tells."""
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


@given(st.lists(st.tuples(st.sampled_from(["default", "reports"]), VALUES)))
def test_it_shows_what_the_librarys_own_shows(told: Sequence[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    quick = TallyHistogram("wait_seconds", "Waits.", ["queue"], bounds=BOUNDS, registry=ours)
    plain = Histogram("wait_seconds", "Waits.", ["queue"], buckets=BOUNDS, registry=theirs)
    for queue, value in told:
        quick.of(queue).observe(value)
        plain.labels(queue).observe(value)
    assert shown(ours) == shown(theirs)


def test_without_labels_it_is_there_from_the_start() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    TallyHistogram("wait_seconds", "Waits.", bounds=BOUNDS, registry=ours)
    Histogram("wait_seconds", "Waits.", buckets=BOUNDS, registry=theirs)
    assert shown(ours) == shown(theirs)


def test_a_name_is_taken_once_and_labels_are_as_many_as_said() -> None:
    registry = CollectorRegistry()
    quick = TallyHistogram("wait_seconds", "Waits.", ["queue"], bounds=BOUNDS, registry=registry)
    with pytest.raises(ValueError, match="Duplicated"):
        TallyHistogram("wait_seconds", "Waits.", bounds=BOUNDS, registry=registry)
    with pytest.raises(ValueError, match="has 1 labels, not 2"):
        quick.of("default", "reports")
