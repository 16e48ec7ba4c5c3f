"""What excuses what: trouble of the database excuses waits, free shards and misfires, and what
befalls single nodes excuses none of them, for others are well."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from chaos.checker.history import DATABASE, RECOVERY, History
from chaos.checker.leases import SHARDS
from chaos.facts import LONG_OUTAGE
from chaos.stories import EVERY_SECOND, Story, at, judge, titles

HEALS_FOR = RECOVERY.total_seconds()
OF_THE_DATABASE = ["restart database", "kill backend", "stall database", "lock table", LONG_OUTAGE]
OF_OTHERS = [
    ("kill worker", "worker-1"),
    ("stop scheduler", "scheduler-1"),
    ("overload", "api"),
    ("pin snapshot", ""),
]


def seconds(span: timedelta) -> float:
    return span.total_seconds()


@pytest.mark.parametrize("kind", OF_THE_DATABASE)
def test_the_database_is_in_trouble_until_all_have_recovered(kind: str) -> None:
    story = Story()
    story.fault(kind, "", 10, 12)
    history = History(story.facts())
    assert not history.was_spared(at(0), at(10), DATABASE)
    assert not history.was_spared(at(12 + HEALS_FOR), at(50), DATABASE)
    assert history.was_spared(at(12.1 + HEALS_FOR), at(50), DATABASE)
    assert history.was_spared(at(0), at(9.9), DATABASE)


@pytest.mark.parametrize(("kind", "victim"), OF_OTHERS)
def test_what_others_suffer_is_no_trouble_of_the_database(kind: str, victim: str) -> None:
    story = Story()
    story.fault(kind, victim, 10, 40)
    assert History(story.facts()).was_spared(at(0), at(60), DATABASE)


def test_a_pin_excuses_nobody_at_all() -> None:
    story = Story()
    story.fault("pin snapshot", "", 10, 40)
    assert History(story.facts()).was_spared(at(0), at(60), "worker-1")


def test_the_longest_calm_lies_before_between_or_after_troubles() -> None:
    story = Story()
    for began in (10, 15, 100):
        story.fault("restart database", "", began, began)
    history = History(story.facts())

    def calm(low: float, high: float) -> float:
        return seconds(history.longest_calm(at(low), at(high), DATABASE))

    first, second = 15 + HEALS_FOR, 100 + HEALS_FOR
    assert calm(0, 60) == 60 - first
    assert calm(0, 20) == 10
    assert calm(12, 30) == 0
    assert calm(12, 110) == 100 - first
    assert calm(50, second + 70) == 70
    assert calm(200, 230) == 30


def waiting(*waits: float) -> Story:
    """One after another was due at the first second, while poison ran in the queue."""
    story = Story()
    poison = story.fire(story.job("poison-1"), 1).claim(1.1)
    job = story.job("tick-1")
    for wait in waits:
        story.fire(job, 1).claim(1.05 + wait)
    story.letter(poison.end(80, "FAILED"), "POISON")
    return story


@pytest.mark.parametrize(("kind", "victim"), OF_OTHERS)
def test_nobody_waits_behind_poison_whatever_single_nodes_suffer(kind: str, victim: str) -> None:
    story = waiting(31)
    story.fault(kind, victim, 3, 20)
    assert titles(story, "poison-isolated") == ["it waited for 31.0 s behind poison"]
    story = waiting(29)
    story.fault(kind, victim, 3, 20)
    assert titles(story, "poison-isolated") == []


@pytest.mark.parametrize("kind", OF_THE_DATABASE)
def test_waits_are_excused_while_the_database_is_in_trouble(kind: str) -> None:
    story = waiting(50)
    story.fault(kind, "", 20, 22)
    assert titles(story, "poison-isolated") == []
    story = waiting(22 + HEALS_FOR + 31)
    story.fault(kind, "", 20, 22)
    assert len(titles(story, "poison-isolated")) == 1


def test_waits_are_counted_that_nothing_would_have_excused_and_letters_are_not() -> None:
    story = waiting(1, 2, 12)
    assert judge(story, "poison-isolated").checked == 1 + 3
    story.fault("restart database", "", 10, 10)
    assert judge(story, "poison-isolated").checked == 1 + 2


IDS = [UUID(int=number) for number in (11, 12, 13)]
NAMES = ["scheduler-1", "scheduler-2", "scheduler-3"]
KILLED = 50.0


class Fleet:
    """Three schedulers that share all shards; the third, which holds one more than the others, is
    killed after 50 s and started again, however often."""

    def __init__(self) -> None:
        self.story = Story()
        self.rows: dict[int, dict[str, Any]] = {}
        for name in NAMES:
            self.story.fault("clock off", name, 0, 0, seconds=9)
        for shard in range(SHARDS):
            self.put(1, shard, IDS[shard % 3 - 1])

    def put(self, now: float, shard: int, owner: UUID) -> None:
        old = self.rows.get(shard, {"shard": shard, "owner": None, "epoch": 0, "expires_at": None})
        epoch = old["epoch"] + (old["owner"] != owner)
        new = {"shard": shard, "owner": owner, "epoch": epoch, "expires_at": at(now + 10)}
        self.story.lease(now, old, new)
        self.rows[shard] = new

    def renew(self, low: int, high: int, owners: list[UUID]) -> None:
        for now in range(low, high, 3):
            for shard, row in self.rows.items():
                if row["owner"] in owners:
                    self.put(now, shard, row["owner"])

    def kill(self, now: float, name: str) -> None:
        self.story.fault("kill scheduler", name, now, now)
        self.story.fault("clock off", name, now + 2, now + 2, seconds=9)

    def live(self, until: int, taken: int, kills: tuple[float, ...] = (KILLED,)) -> Story:
        """Of those that the third leaves, the others take so many as soon as they can, in turn."""
        self.renew(3, int(KILLED), IDS)
        for now in kills:
            self.kill(now, NAMES[2])
        self.renew(51, 63, IDS[:2])
        left = [shard for shard, row in self.rows.items() if row["owner"] == IDS[2]]
        for number, shard in enumerate(left[:taken]):
            self.put(63, shard, IDS[number % 2])
        self.renew(66, until, IDS[:2])
        self.story.sample(until)
        return self.story


# Of three each may hold 22, and those that are left hold 21: both take one more, or only the first.
AT_ITS_SHARE, LESS = 2, 1
AGAIN_AND_AGAIN = (KILLED, 64.0, 78.0)


def test_who_is_left_alone_and_has_room_takes_what_is_free() -> None:
    story = Fleet().live(95, LESS, (KILLED, 90.0))
    found = judge(story, "shards-covered", read=100)
    room = ", and a scheduler that nothing had struck had room"
    assert found.found == 21
    assert found.violations[0].title.endswith(room)


def test_who_holds_its_share_need_not_take_more() -> None:
    story = Fleet().live(95, AT_ITS_SHARE, (KILLED, 90.0))
    assert titles(story, "shards-covered", read=100) == []


def test_the_dead_are_counted_until_their_lease_has_run_out() -> None:
    """Of four or five that seem to live, each may hold 16 at the most."""
    story = Fleet().live(95, LESS, AGAIN_AND_AGAIN)
    assert titles(story, "shards-covered", read=100) == []


def test_who_is_dead_for_long_is_not_counted() -> None:
    """Of two each may hold 32."""
    story = Fleet().live(85, AT_ITS_SHARE)
    assert titles(story, "shards-covered", read=90) == []
    story.faults.pop()  # it was not started again
    assert len(judge(story, "shards-covered", read=90).violations) == 10


def test_what_the_dead_have_let_run_out_they_do_not_hold() -> None:
    story = Fleet().live(95, 0, (KILLED, 90.0))
    story.fault("stop scheduler", NAMES[0], 70, 72)
    assert judge(story, "shards-covered", read=100).found == 22


def test_a_life_that_is_over_takes_nothing() -> None:
    fleet = Fleet()
    fleet.kill(5, NAMES[0])
    story = fleet.live(95, AT_ITS_SHARE, (KILLED, 90.0))
    assert titles(story, "shards-covered", read=100) == []


def test_who_has_just_come_takes_nothing_that_another_let_run_out() -> None:
    story = Fleet().live(95, LESS, (KILLED, 90.0))
    story.faults[1] = replace(story.faults[1], began=story.faults[1].began + 60)
    assert titles(story, "shards-covered", read=100) == []


@pytest.mark.parametrize(
    ("kind", "victim", "is_excuse"),
    [
        ("restart database", "", True),
        ("pin snapshot", "", False),
        ("kill worker", "worker-1", False),
        ("stop scheduler", "scheduler-1", True),  # the second alone is not known to have less
        ("stop scheduler", "scheduler-3", False),
    ],
)
def test_trouble_of_the_database_or_of_who_has_room_excuses(
    kind: str, victim: str, *, is_excuse: bool
) -> None:
    story = Fleet().live(95, LESS, (KILLED, 90.0))
    story.fault(kind, victim, 70, 72)
    assert (titles(story, "shards-covered", read=100) == []) is is_excuse


def test_when_all_have_recovered_no_shard_is_free() -> None:
    """Also if nobody is known to have been there: it was free for 15 s of calm."""
    high = int(KILLED + HEALS_FOR) + 15
    assert titles(Fleet().live(high, AT_ITS_SHARE), "shards-covered", read=99) == []
    assert len(titles(Fleet().live(high + 2, AT_ITS_SHARE), "shards-covered", read=99)) == 10


def test_a_shard_that_is_free_for_two_minutes_is_lost_whatever_was_struck() -> None:
    def free_for(length: float) -> list[str]:
        story = Story()
        free = {"shard": 5, "owner": None, "epoch": 0, "expires_at": None}
        held = free | {"owner": IDS[0], "epoch": 1, "expires_at": at(10)}
        story.lease(1, free, held)
        taken = {"owner": IDS[1], "epoch": 2, "expires_at": at(900)}
        story.lease(10 + length, held, held | taken)
        for began in range(0, 200, 20):
            story.fault("restart database", "", began, began)
        return titles(story, "shards-covered", read=200)

    assert free_for(119) == []
    assert free_for(121) == ["shard 5: nobody had it for 121.0 s"]


def test_changes_of_hands_count_if_somebody_had_to_see_to_them() -> None:
    story = Fleet().live(67, taken=22)
    held = SHARDS
    assert judge(story, "shards-covered", read=70).checked == held + 22
    story.fault("restart database", "", 45, 45)
    assert judge(story, "shards-covered", read=70).checked == held
    late = Fleet().live(95, AT_ITS_SHARE, (KILLED, 90.0))
    assert judge(late, "shards-covered", read=100).checked == 22 + 22 + 2


CAUSE = "skipped as a misfire though nothing had struck the database"


def late(oldest: float, moment: float, **policies: object) -> Story:
    """A job that fires once what is left of the instants since then."""
    story = Story()
    job = story.job(schedule={**EVERY_SECOND, **policies})
    story.versions[0]["valid_from"] = at(-60)
    newest = int(moment) - 2
    story.skip(job, oldest, newest - 1, "MISFIRE", recorded_at=at(moment))
    story.fire(job, newest, fired=moment)
    return story


def test_a_misfire_has_a_cause() -> None:
    assert titles(late(1, 13), "overlap-and-misfire") == []
    assert titles(late(1, 13.1), "overlap-and-misfire") == [CAUSE]


@pytest.mark.parametrize(("kind", "victim"), [*OF_OTHERS, ("kill scheduler", "scheduler-1")])
def test_what_single_nodes_suffer_makes_no_misfire(kind: str, victim: str) -> None:
    story = late(1, 20)
    story.fault(kind, victim, 2, 18)
    assert titles(story, "overlap-and-misfire") == [CAUSE]


@pytest.mark.parametrize("kind", OF_THE_DATABASE)
def test_trouble_of_the_database_makes_misfires(kind: str) -> None:
    story = late(1, 20)
    story.fault(kind, "", 2, 18)
    assert titles(story, "overlap-and-misfire") == []


def test_jitter_and_a_grace_of_its_own_are_causes() -> None:
    assert titles(late(1, 13.4, jitter_seconds=0.5), "overlap-and-misfire") == []
    assert titles(late(1, 13.6, jitter_seconds=0.5), "overlap-and-misfire") == [CAUSE]
    # The next instant is a second away: there the jitter ends.
    assert titles(late(1, 13.9, jitter_seconds=3), "overlap-and-misfire") == []
    assert titles(late(1, 14.1, jitter_seconds=3), "overlap-and-misfire") == [CAUSE]
    assert titles(late(1, 20, misfire_grace_seconds=2), "overlap-and-misfire") == []
    assert titles(late(1, 20, misfire_grace_seconds=10), "overlap-and-misfire") == [CAUSE]


def test_a_change_of_the_job_is_a_cause() -> None:
    story = late(1, 20)
    story.version(story.jobs[0]["id"], 20.1)
    assert titles(story, "overlap-and-misfire") == []
    story.versions[-1]["valid_from"] = at(21)
    assert titles(story, "overlap-and-misfire") == [CAUSE]
    story.versions[-1]["valid_from"] = at(0.9)
    assert titles(story, "overlap-and-misfire") == []
