"""Where something is to happen, and whether it has come to that."""

import pytest

from foliot.store.statements import Statement, every_statement
from foliot.testing.points import (
    CONTROLS,
    SPOKEN,
    Point,
    Points,
    Strike,
    Verdict,
    When,
    do_nothing,
    file_name,
    judge,
    name_of,
)
from foliot.testing.wire import Answer, Order

EVERY = list(every_statement())
AGAIN, LATER, STRIKE = Verdict.AGAIN, Verdict.LATER, Verdict.STRIKE


@pytest.mark.parametrize("statement", EVERY, ids=lambda each: each.name)
def test_every_statement_is_known_by_its_text(statement: Statement) -> None:
    assert name_of(statement.sql.encode()) == statement.name


def test_a_statement_with_another_body_keeps_its_name() -> None:
    purpose = EVERY[0].sql.partition("\n")[0]
    assert name_of(f"{purpose}\nselect 1".encode()) == EVERY[0].name


@pytest.mark.parametrize(
    ("sql", "name"),
    [("begin", "begin"), ("COMMIT ", "commit"), ("rollback", "rollback"), ("end", ""), ("", "")],
)
def test_what_has_no_file_is_known_by_its_word(sql: str, name: str) -> None:
    assert name_of(sql.encode()) == name


def test_every_spoken_word_names_a_statement() -> None:
    assert {file_name(word) for word in SPOKEN} <= {statement.name for statement in EVERY}
    assert {file_name(word) for word in CONTROLS} == CONTROLS
    assert file_name("jobs/fire_due") == file_name("fire") == "jobs/fire_due"
    assert not file_name("")


def test_a_name_that_no_statement_has_is_refused() -> None:
    with pytest.raises(ValueError, match="'fires'"):
        file_name("fires")


@pytest.mark.parametrize(
    ("when", "in_transaction", "failed", "tag", "verdict"),
    [
        ("inside", True, False, b"SELECT 1", STRIKE),
        ("inside", False, False, b"SELECT 1", AGAIN),
        ("inside", True, True, b"", AGAIN),
        ("after", False, False, b"SELECT 1", STRIKE),
        ("after", False, False, b"COMMIT", STRIKE),
        ("after", True, False, b"SELECT 1", LATER),
        ("after", False, False, b"ROLLBACK", AGAIN),
        ("after", False, True, b"", AGAIN),
        ("after", True, True, b"", AGAIN),
    ],
)
def test_an_answer_decides_whether_it_has_come_to_the_point(
    when: When, in_transaction: bool, failed: bool, tag: bytes, verdict: Verdict
) -> None:
    assert judge(when, Answer(1, 0, in_transaction, failed, tag)) is verdict


@pytest.mark.parametrize(
    ("point", "taken"),
    [
        (Point("before", "jobs/fire_due"), True),
        (Point("before", "commit"), False),
        (Point("before"), True),
        (Point("before", words=b"needle"), True),
        (Point("before", words=b"text"), True),
        (Point("before", words=b"hay"), False),
        (Point("before", "jobs/fire_due", b"needle"), True),
        (Point("before", "commit", b"needle"), False),
    ],
)
def test_a_point_is_a_name_and_words(point: Point, taken: bool) -> None:
    points = Points()
    points.wait_for(Strike(point, do_nothing, cut=False))
    order = Order(b"the text", b"a needle", 1)
    assert (points.take("jobs/fire_due", order) is not None) is taken
    assert points.take("jobs/fire_due", order) is None, "once"


def test_one_is_taken_at_a_time_in_the_order_they_came() -> None:
    points = Points()
    strikes = [Strike(Point("before"), do_nothing, cut=False) for _ in range(2)]
    for strike in strikes:
        points.wait_for(strike)
    order = Order(b"", b"", 1)
    assert [points.take("", order) for _ in range(3)] == [*strikes, None]
