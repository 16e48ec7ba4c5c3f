"""What any transport must do, whatever carries its hints: checks that a test of one calls.

    await check_a_hint_is_heard(make)

`make` opens a transport of the same installation as those it made before, as another process has
it, for as long as the block lasts.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from foliot.testing.soon import soon
from foliot.transport.port import Matter, Transport

Make = Callable[[], AbstractAsyncContextManager[Transport]]


class Heard:
    """What a subscriber was told: names, or none where anything may have changed."""

    def __init__(self, transport: Transport, matter: Matter) -> None:
        self.told: list[frozenset[str]] = []
        self.stop = transport.subscribe(matter, self.told.append)

    def names(self) -> set[str]:
        return {name for names in self.told for name in names}

    async def until_told(self, *names: str) -> None:
        async def all_are() -> bool:
            return set(names) <= self.names()

        await soon(all_are)

    async def until_told_of_everything(self) -> None:
        async def is_told() -> bool:
            return frozenset() in self.told

        await soon(is_told)


async def until_flow(transport: Transport, *, flows: bool = True) -> None:
    async def is_so() -> bool:
        return transport.flows is flows

    await soon(is_so)


async def check_a_hint_is_heard(make: Make) -> None:
    """By others, by its own process, and with the names of all that were given."""
    async with make() as here, make() as there:
        heard = [Heard(each, Matter.WORK) for each in (here, there)]
        await until_flow(here)
        await until_flow(there)
        here.publish(Matter.WORK, ["a"])
        here.publish(Matter.WORK, ["b", "ж ~ \"'\\ \n"])
        for each in heard:
            await each.until_told("a", "b", "ж ~ \"'\\ \n")


async def check_no_names_are_everything(make: Make) -> None:
    async with make() as here, make() as there:
        await until_flow(there)
        heard = Heard(there, Matter.ADMIT)
        here.publish(Matter.ADMIT)
        await heard.until_told_of_everything()


async def check_however_many_names_are_heard(make: Make) -> None:
    """All of them, or else that it may be anything."""
    async with make() as here, make() as there:
        await until_flow(there)
        heard = Heard(there, Matter.CANCEL)
        names = [f"{number} {'x' * 200}" for number in range(1000)]
        here.publish(Matter.CANCEL, names)

        async def is_told() -> bool:
            return frozenset() in heard.told or set(names) <= heard.names()

        await soon(is_told)


async def check_only_what_was_asked_for_is_heard(make: Make) -> None:
    """Not another matter, and nothing after the end: a later hint is there, earlier ones not."""
    async with make() as here, make() as there:
        await until_flow(there)
        other, ended, work = (
            Heard(there, matter) for matter in (Matter.STAGE, Matter.WORK, Matter.WORK)
        )
        ended.stop()
        here.publish(Matter.WORK, ["a"])
        await work.until_told("a")
        here.publish(Matter.WORK, ["b"])
        await work.until_told("b")
        if other.told or ended.told:
            raise AssertionError(f"heard what was not asked for: {other.told} {ended.told}")


async def check_who_begins_to_hear_is_told_that_anything_may_have_changed(make: Make) -> None:
    async with make() as here:
        heard = Heard(here, Matter.RELEASE)
        await heard.until_told_of_everything()
        await until_flow(here)


async def check_a_hint_that_nobody_hears_is_nobodys_trouble(make: Make) -> None:
    async with make() as here:
        here.publish(Matter.WORK, ["a"])
        await until_flow(here)
        here.publish(Matter.AFTER)


EVERY_CHECK = (
    check_a_hint_is_heard,
    check_no_names_are_everything,
    check_however_many_names_are_heard,
    check_only_what_was_asked_for_is_heard,
    check_who_begins_to_hear_is_told_that_anything_may_have_changed,
    check_a_hint_that_nobody_hears_is_nobodys_trouble,
)
