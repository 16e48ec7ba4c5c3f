"""What dies is started again at the promised pace, and everything stops in order."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from foliot.runtime.supervisor import (
    Died,
    NotStarted,
    RoleEvent,
    Started,
    Supervisor,
    restart_delay_seconds,
)


class VirtualClock:
    """Sleeping takes no time and moves the clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class ScriptedProcess:
    """Lives as long as it is told, life after life; the last life has no end."""

    def __init__(
        self,
        clock: VirtualClock,
        lives_seconds: Sequence[float] = (),
        *,
        refusals: Sequence[Exception | None] = (),
        diary: list[str] | None = None,
        name: str = "process",
    ) -> None:
        self._clock = clock
        self._lives = list(lives_seconds)
        self._refusals = list(refusals)
        self._diary = diary if diary is not None else []
        self._name = name
        self.pid: int | None = None
        self.starts = 0
        self.settled = asyncio.Event()

    async def start(self) -> None:
        refusal = self._refusals.pop(0) if self._refusals else None
        if refusal is not None:
            raise refusal
        self.starts += 1
        self.pid = 100 + self.starts
        self._diary.append(f"start {self._name}")

    async def wait(self) -> int:
        if not self._lives:
            self.settled.set()
            await asyncio.Event().wait()
        self._clock.now += self._lives.pop(0)
        return -9

    async def stop(self) -> None:
        self._diary.append(f"stop {self._name}")

    def kill(self) -> None:
        self._diary.append(f"kill {self._name}")


async def start_in_turn(clock: VirtualClock, roles: Mapping[str, ScriptedProcess]) -> None:
    async with Supervisor(clock, lambda _: None) as supervisor:
        for name, process in roles.items():
            await supervisor.start(name, process)


async def supervise(process: ScriptedProcess, clock: VirtualClock) -> list[RoleEvent]:
    events: list[RoleEvent] = []
    async with asyncio.timeout(5), Supervisor(clock, events.append) as supervisor:
        await supervisor.start("api", process)
        await process.settled.wait()
    return events


@pytest.mark.parametrize(
    ("previous", "lived_seconds", "expected"),
    [
        (None, 0.0, 0.2),
        (0.2, 0.0, 0.4),
        (0.4, 9.999, 0.8),
        (1.6, 1.0, 2.0),
        (2.0, 1.0, 2.0),
        (2.0, 10.0, 0.2),
        (0.8, 3600.0, 0.2),
    ],
)
def test_the_delay_doubles_to_two_seconds_and_begins_anew_after_ten(
    previous: float | None, lived_seconds: float, expected: float
) -> None:
    assert restart_delay_seconds(previous, lived_seconds=lived_seconds) == expected


async def test_a_role_that_keeps_dying_is_restarted_ever_slower_up_to_two_seconds() -> None:
    clock = VirtualClock()
    process = ScriptedProcess(clock, [0.1] * 6)
    await supervise(process, clock)
    assert clock.slept == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert process.starts == 7


async def test_a_role_that_lived_ten_seconds_is_restarted_quickly_again() -> None:
    clock = VirtualClock()
    await supervise(ScriptedProcess(clock, [0.1, 0.1, 0.1, 10.0, 0.1, 9.9]), clock)
    assert clock.slept == [0.2, 0.4, 0.8, 0.2, 0.4, 0.8]


async def test_a_death_and_the_restart_are_reported_with_status_and_new_pid() -> None:
    clock = VirtualClock()
    events = await supervise(ScriptedProcess(clock, [1.0]), clock)
    assert events == [
        Started("api", 101, restarts=0),
        Died("api", -9, 0.2),
        Started("api", 102, restarts=1),
    ]


async def test_a_restart_that_fails_is_tried_again_more_slowly() -> None:
    clock = VirtualClock()
    process = ScriptedProcess(clock, [1.0], refusals=[None, OSError("no memory"), None])
    events = await supervise(process, clock)
    assert events[2] == NotStarted("api", "no memory", 0.4)
    assert clock.slept == [0.2, 0.4]
    assert process.starts == 2


async def test_the_first_start_that_fails_is_the_callers_to_hear() -> None:
    clock = VirtualClock()
    diary: list[str] = []
    leaned_on = ScriptedProcess(clock, diary=diary, name="postgres")
    process = ScriptedProcess(clock, refusals=[OSError("no such program")])
    with pytest.raises(OSError, match="no such program"):
        await start_in_turn(clock, {"postgres": leaned_on, "api": process})
    assert diary == ["start postgres", "stop postgres"]


async def test_what_others_lean_on_stops_last() -> None:
    clock = VirtualClock()
    diary: list[str] = []
    names = ("postgres", "api", "worker")
    await start_in_turn(
        clock, {name: ScriptedProcess(clock, diary=diary, name=name) for name in names}
    )
    assert diary[3:] == ["stop worker", "stop api", "stop postgres"]


async def test_one_that_will_not_stop_does_not_keep_the_others_alive() -> None:
    class Stubborn(ScriptedProcess):
        async def stop(self) -> None:
            raise OSError("not now")

    clock = VirtualClock()
    diary: list[str] = []
    leaned_on = ScriptedProcess(clock, diary=diary, name="postgres")
    with pytest.raises(OSError, match="not now"):
        await start_in_turn(clock, {"postgres": leaned_on, "api": Stubborn(clock)})
    assert "stop postgres" in diary


async def test_a_single_run_is_not_restarted() -> None:
    clock = VirtualClock()
    process = ScriptedProcess(clock, [1.0])
    async with Supervisor(clock, lambda _: None) as supervisor:
        assert await supervisor.run("check", process) == -9
    assert process.starts == 1
    assert clock.slept == []


async def test_stopping_does_not_wait_for_a_pending_restart() -> None:
    class Waiting(VirtualClock):
        def __init__(self) -> None:
            super().__init__()
            self.asleep = asyncio.Event()

        async def sleep(self, seconds: float) -> None:
            self.slept.append(seconds)
            self.asleep.set()
            await asyncio.Event().wait()

    clock = Waiting()
    process = ScriptedProcess(clock, [1.0])
    async with asyncio.timeout(5), Supervisor(clock, lambda _: None) as supervisor:
        await supervisor.start("api", process)
        await clock.asleep.wait()
    assert process.starts == 1


async def test_killing_reaches_every_process_at_once() -> None:
    clock = VirtualClock()
    diary: list[str] = []
    async with Supervisor(clock, lambda _: None) as supervisor:
        for name in ("postgres", "api"):
            await supervisor.start(name, ScriptedProcess(clock, diary=diary, name=name))
        supervisor.kill()
    assert diary[2:4] == ["kill api", "kill postgres"]
