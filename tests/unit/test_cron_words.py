"""Cron expressions in words: the familiar ones sound familiar, the odd ones stay true."""

import pytest

from foliot.core.cron.expression import parse
from foliot.core.cron.words import describe


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("10 * * * * *", "at second 10 of every minute"),
        ("5/10 * * * * *", "every 10th second from 5 to 55 of every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("3/15 * * * *", "every 15 minutes, from minute 3 of every hour on"),
        ("0 * * * *", "every hour"),
        ("@hourly", "every hour"),
        ("5 * * * *", "at minute 5 of every hour"),
        ("5,20,35 * * * *", "at minutes 5, 20 and 35 of every hour"),
        ("0 */2 * * *", "every 2 hours from 00:00"),
        ("30 1/2 * * *", "every 2 hours from 01:30"),
        ("0 */6 * * *", "every day at 00:00, 06:00, 12:00 and 18:00"),
        ("30 2 * * *", "every day at 02:30"),
        ("10 30 2 * * *", "every day at 02:30:10"),
        ("0 9 * * 1-5", "every weekday at 09:00"),
        ("0 9 * * MON-THU", "every Monday to Thursday at 09:00"),
        ("0 9 * * SAT,SUN", "every Saturday and Sunday at 09:00"),
        ("@weekly", "every Sunday at 00:00"),
        ("0 9 * 1 MON", "every Monday in January at 09:00"),
        ("0 9 1 * *", "at 09:00 on the 1st of every month"),
        ("0 9 1,15 * *", "at 09:00 on the 1st and the 15th of every month"),
        ("0 0 29 2 *", "at 00:00 on 29 February"),
        ("@yearly", "at 00:00 on 1 January"),
        ("0 0 1 */3 *", "at 00:00 on the 1st of January, April, July and October"),
        ("0 18 * * FRIL", "on the last Friday of every month at 18:00"),
        ("0 18 * * TUE#3", "on the third Tuesday of every month at 18:00"),
        ("0 18 * 1 TUE#3", "on the third Tuesday of January at 18:00"),
        ("0 0 L * *", "at 00:00 on the last day of every month"),
        ("0 0 LW * *", "at 00:00 on the last weekday of every month"),
        ("0 0 15W * *", "at 00:00 on the weekday nearest the 15th of every month"),
        ("0 0 L-3 * *", "at 00:00 on the day 3 days before the last of every month"),
        ("*/5 9-17 * * 1-5", "every 5 minutes from 09:00 to 17:55, every weekday"),
        ("30 9-17 * * *", "every hour from 09:30 to 17:30"),
        ("* * 1 * *", "every minute on the 1st of every month"),
        ("* * * * FRIL", "every minute on the last Friday of every month"),
        ("* * * 1-3,12 *", "every minute, every day in January to March and December"),
    ],
)
def test_familiar_expressions_sound_familiar(expression: str, words: str) -> None:
    assert describe(parse(expression), "UTC") == f"{words}, UTC"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        # A step that does not divide the hour is no steady rhythm.
        ("*/7 * * * *", "every 7th minute from 0 to 56 of every hour"),
        ("*/7 * * * * *", "every 7th second from 0 to 56 of every minute"),
        ("0 */5 * * *", "every day at 00:00, 05:00, 10:00, 15:00 and 20:00"),
        ("0 */3 1 * *", "every 3 hours from 00:00 on the 1st of every month"),
        ("5-55/5 * * * *", "every 5th minute from 5 to 55 of every hour"),
        ("0 2-22/2 * * *", "at minute 0 of every 2nd hour from 2 to 22"),
        ("0-29 * * * *", "at minutes 0 to 29 of every hour"),
        ("* 9,11,15 * * *", "every minute of hours 9, 11 and 15"),
        ("3,17,40 9,11,15 * * *", "at minutes 3, 17 and 40 of hours 9, 11 and 15"),
        ("* 5 9 * * *", "every second of minute 5 of hour 9"),
        ("* 0 * * * *", "every second of minute 0 of every hour"),
        (
            "10 */15 9-17 * * *",
            "at second 10 of every 15th minute from 0 to 45 of hours 9 to 17",
        ),
        # Not every month has the day.
        ("0 0 31 * *", "at 00:00 on the 31st of every month that has one"),
        (
            "0 0 1,31 * *",
            "at 00:00 on the 1st and the 31st of every month, where the month has it",
        ),
        ("0 0 31 1,3 *", "at 00:00 on the 31st of January and March"),
        ("0 0 28,29 2 *", "at 00:00 on the 28th and the 29th of February, where the month has it"),
        ("0 18 * * MON#5", "at 18:00 on the fifth Monday of every month that has one"),
        ("0 9 * 2 MON#5", "at 09:00 on the fifth Monday of February, where the month has it"),
        ("* * * 2 MON#5", "every minute on the fifth Monday of February, where the month has it"),
        (
            "0 9 29-31 * *",
            "at 09:00 on the 29th to the 31st of every month, where the month has them",
        ),
        (
            "0 9 29-31 * 5",
            (
                "at 09:00 on the 29th to the 31st of every month, where the month has them,"
                " and also on every Friday"
            ),
        ),
        ("0 9 26-31 1 *", "at 09:00 on the 26th to the 31st of January"),
        ("0 9 26-28 * *", "at 09:00 on the 26th to the 28th of every month"),
        ("0 0 L-28 * *", "at 00:00 on the day 28 days before the last of every month that has one"),
        # Either, or both.
        ("0 0 13 * 5", "at 00:00 on the 13th of every month, and also on every Friday"),
        (
            "0 0 1-7 * */2",
            (
                "at 00:00 on every Tuesday, Thursday, Saturday and Sunday"
                " if that is the 1st to the 7th of the month"
            ),
        ),
        ("0 0 1-31 * MON", "every day at 00:00"),
        ("0 0 * * MON,TUE#3", "every Monday and on the third Tuesday of every month at 00:00"),
        ("0 0 */2 * *", "at 00:00 on every 2nd day from the 1st to the 31st of every month"),
        ("0 0 1-5,10 * *", "at 00:00 on the 1st to the 5th and the 10th of every month"),
        ("0 0 * * FRI-MON", "every Monday, Friday, Saturday and Sunday at 00:00"),
    ],
)
def test_odd_expressions_stay_true(expression: str, words: str) -> None:
    assert describe(parse(expression), "UTC") == f"{words}, UTC"


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("UTC", "UTC"),
        ("Etc/UTC", "UTC"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("CET", "CET"),
        ("America/New_York", "New York time"),
        ("America/Argentina/Buenos_Aires", "Buenos Aires time"),
        ("US/Eastern", "US Eastern time"),
        ("Japan", "Japan time"),
    ],
)
def test_the_zone_is_named(zone: str, words: str) -> None:
    assert describe(parse("0 9 * * 1-5"), zone) == f"every weekday at 09:00, {words}"


def test_h_is_shown_resolved() -> None:
    seed = "01980000-0000-7000-8000-000000000000"
    assert describe(parse("H H * * *", seed=seed), "UTC") == "every day at 19:47, UTC"
