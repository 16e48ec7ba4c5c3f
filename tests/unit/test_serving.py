"""Who serves a lane, and what is missing where nobody does: the nearest miss, in words."""

from dataclasses import replace

import pytest

from foliot.core.serving import Lane, Missing, Staff, Workforce, find_lack, serves, serving

LANE = Lane("default", None, (), "HANDLER", "send_mail")
STAFF = Staff(1, 8, 0, ("default",), None, (), ("HANDLER", "HTTP"), ("send_mail",))


@pytest.mark.parametrize(
    ("lane", "staff", "served"),
    [
        (LANE, STAFF, True),
        (LANE, replace(STAFF, queues=("*",)), True),
        (LANE, replace(STAFF, queues=("mail",)), False),
        (LANE, replace(STAFF, queues=()), False),
        (LANE, replace(STAFF, region="eu"), True),
        (replace(LANE, region="eu"), STAFF, False),
        (replace(LANE, region="eu"), replace(STAFF, region="eu"), True),
        (replace(LANE, region="eu"), replace(STAFF, region="us"), False),
        (LANE, replace(STAFF, labels=("gpu",)), True),
        (replace(LANE, requires=("gpu",)), STAFF, False),
        (replace(LANE, requires=("gpu",)), replace(STAFF, labels=("big", "gpu")), True),
        (LANE, replace(STAFF, target_types=("HTTP",)), False),
        (LANE, replace(STAFF, handlers=("other",)), False),
        (replace(LANE, target_type="HTTP", handler=None), replace(STAFF, handlers=()), True),
    ],
)
def test_a_worker_serves_a_lane_if_it_has_all_that_it_asks_for(
    lane: Lane, staff: Staff, served: bool
) -> None:
    workers = Workforce((staff,))
    assert serves(staff, lane) is served
    assert (find_lack(workers, lane) is None) is served
    assert serving(workers, lane) == ((staff,) if served else ())


EAST = replace(STAFF, region="us", number=2, queues=("default", "mail"))


@pytest.mark.parametrize(
    ("workers", "lane", "missing", "message"),
    [
        (Workforce(), LANE, Missing.WORKER, "no worker is running"),
        (
            Workforce((), silent=2, draining=1),
            LANE,
            Missing.WORKER,
            "no worker is running (2 silent and 1 draining)",
        ),
        (
            Workforce((STAFF, EAST)),
            replace(LANE, queue="web"),
            Missing.QUEUE,
            "none of 3 live workers takes from queue web (they take from default and mail)",
        ),
        (
            Workforce((replace(STAFF, queues=()),)),
            LANE,
            Missing.QUEUE,
            "none of 1 live worker takes from queue default (they take from none)",
        ),
        (
            Workforce((replace(STAFF, queues=tuple("abcdefg")),)),
            LANE,
            Missing.QUEUE,
            (
                "none of 1 live worker takes from queue default"
                " (they take from a, b, c, d, e and 2 more)"
            ),
        ),
        (
            Workforce((STAFF, EAST)),
            replace(LANE, queue="mail", region="eu"),
            Missing.REGION,
            "none of 2 live workers of queue mail is in region eu (they are in us)",
        ),
        (
            Workforce((replace(STAFF, labels=("big",)), STAFF)),
            replace(LANE, requires=("big", "gpu")),
            Missing.LABELS,
            "label gpu missing: none of 2 live workers that could take it has it",
        ),
        (
            Workforce((STAFF,)),
            replace(LANE, requires=("big", "gpu")),
            Missing.LABELS,
            "labels big and gpu missing: none of 1 live worker that could take it has them all",
        ),
        (
            Workforce((STAFF,)),
            replace(LANE, target_type="COMMAND", handler=None),
            Missing.TARGET_TYPE,
            "none of 1 live worker that could take it is allowed to run commands",
        ),
        (
            Workforce((STAFF,)),
            replace(LANE, target_type="DAG", handler=None),
            Missing.TARGET_TYPE,
            "none of 1 live worker that could take it runs DAG targets",
        ),
        (
            Workforce((STAFF,)),
            replace(LANE, handler="send_mial"),
            Missing.HANDLER,
            (
                "handler send_mial is known to none of 1 live worker that could take it;"
                " send_mail is known"
            ),
        ),
        (
            Workforce((STAFF,)),
            replace(LANE, handler="xyz"),
            Missing.HANDLER,
            "handler xyz is known to none of 1 live worker that could take it",
        ),
    ],
)
def test_the_first_thing_that_nobody_has_is_named(
    workers: Workforce, lane: Lane, missing: Missing, message: str
) -> None:
    lack = find_lack(workers, lane)
    assert lack is not None
    assert (lack.missing, lack.message) == (missing, message)
    assert lack.way_out


def test_who_has_it_all_but_one_thing_is_nearer_than_who_has_nothing() -> None:
    other = replace(STAFF, queues=("other",), labels=("gpu",))
    lack = find_lack(Workforce((other, STAFF)), replace(LANE, requires=("gpu",)))
    assert lack is not None
    assert lack.missing is Missing.LABELS
