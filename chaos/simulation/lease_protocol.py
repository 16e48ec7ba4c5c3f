"""Every order of events there can be between a few schedulers and their leases, tried out.

A state is what the leases say, how far each shard's instants are settled and what each node is
about to do. A node reads, and does what follows from that at any later time: in between it may be
paused, slow or dead, and the others go on; a lease may run out at any moment. What a node does to a
lease is done by the very statements of the simulation. Firing compares the instant, as the store
does.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from chaos.simulation import scheduler_statements
from chaos.simulation.engine import BEGAN
from chaos.simulation.store import SimulatedStore
from foliot.core.ids import SchedulerId
from foliot.core.lease import Lease

NOBODY: Final = 0
DEAD: Final = 99  # an identity that is no more
NOTHING: Final = ("", 0, 0)
LEASE_SECONDS: Final = 10.0
PAST: Final = BEGAN - timedelta(seconds=1)
FUTURE: Final = BEGAN + timedelta(seconds=LEASE_SECONDS)


class Held(NamedTuple):
    """A lease, with time left or without."""

    owner: int
    epoch: int
    is_over: bool


class Intent(NamedTuple):
    """What a node is about to do, by what it has read: an epoch, or an instant."""

    what: str
    shard: int
    seen: int


class State(NamedTuple):
    """By shard the lease and how often each instant was fired; by node its intent."""

    leases: tuple[Held, ...]
    fired: tuple[tuple[int, ...], ...]
    intents: tuple[Intent | None, ...]


Apply = Callable[[Held, Intent, int], Held]
# Whether an instant that somebody has read may still be fired, by how often each has been.
MayFire = Callable[[tuple[int, ...], int], bool]


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int = 3
    shards: int = 1
    epochs: int = 4
    instants: int = 1


@dataclass(frozen=True, slots=True)
class Found:
    """How many states there are, and how one comes to the first that must not be."""

    states: int
    wrong: str | None = None
    steps: tuple[str, ...] = ()


def apply(lease: Held, intent: Intent, node: int) -> Held:
    """By the statement of the simulated store."""
    store = SimulatedStore({}, {}, [intent.shard])
    owner = SchedulerId(UUID(int=lease.owner)) if lease.owner else None
    until = None if owner is None else PAST if lease.is_over else FUTURE
    store.leases[intent.shard] = Lease(intent.shard, owner, lease.epoch, until)
    who = SchedulerId(UUID(int=node))
    shards, epochs = [intent.shard], [intent.seen]
    if intent.what == "take":
        scheduler_statements.take(store, who, shards, epochs, LEASE_SECONDS, None)
    elif intent.what == "renew":
        scheduler_statements.renew(store, who, "", "", shards, epochs, LEASE_SECONDS, None)
    else:
        scheduler_statements.give(store, who, shards, epochs)
    after = store.leases[intent.shard]
    is_over = after.owner is not None and not after.is_held(BEGAN)
    return Held(after.owner.int if after.owner else NOBODY, after.epoch, is_over)


def is_next(fired: tuple[int, ...], seen: int) -> bool:
    """The compare-and-set of the fire."""
    return fired[seen] == 0


def explore(size: Size, change: Apply = apply, may_fire: MayFire = is_next) -> Found:
    """All states that can be reached, breadth first: the first wrong one is a nearest one."""
    change = lru_cache(maxsize=None)(change)
    first = State(
        (Held(NOBODY, 0, is_over=False),) * size.shards,
        ((0,) * size.instants,) * size.shards,
        (None,) * size.nodes,
    )
    before: dict[State, tuple[State, str] | None] = {first: None}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        for word, after, wrong in _steps(size, state, change, may_fire):
            known = _smallest(after)
            if wrong is not None:
                steps = (*_way(before, state), word)
                return Found(len(before), wrong, steps)
            if known not in before:
                before[known] = (state, word)
                queue.append(known)
    return Found(len(before))


def _steps(
    size: Size, state: State, change: Apply, may_fire: MayFire
) -> Iterator[tuple[str, State, str | None]]:
    for shard, lease in enumerate(state.leases):
        if lease.owner != NOBODY and not lease.is_over:
            yield f"{shard} runs out", _with_lease(state, shard, lease._replace(is_over=True)), None
    for place, intent in enumerate(state.intents):
        node = place + 1
        if intent is None:
            for begun in _intents(size, state, node):
                word = f"{node} is about to {begun.what} {begun.shard}"
                yield word, _with_intent(state, place, begun), None
            continue
        word = f"{node} would {intent.what} {intent.shard}"
        yield word, *_commit(state, place, intent, change, may_fire)
    for place in range(size.nodes):
        yield f"{place + 1} dies", _without(state, place), None


def _intents(size: Size, state: State, node: int) -> Iterator[Intent]:
    for shard, lease in enumerate(state.leases):
        if (lease.owner == NOBODY or lease.is_over) and lease.epoch < size.epochs:
            yield Intent("take", shard, lease.epoch)
        if lease.owner == node:
            yield Intent("renew", shard, lease.epoch)
            yield Intent("give", shard, lease.epoch)
        instant = sum(count > 0 for count in state.fired[shard])
        if instant < size.instants:  # anyone may fire what is overdue
            yield Intent("fire", shard, instant)


def _commit(
    state: State, place: int, intent: Intent, change: Apply, may_fire: MayFire
) -> tuple[State, str | None]:
    node, done = place + 1, _with_intent(state, place, None)
    if intent.what == "fire":
        counts = state.fired[intent.shard]
        if not may_fire(counts, intent.seen):
            return done, None
        more = tuple(n + (at == intent.seen) for at, n in enumerate(counts))
        wrong = "an instant was fired twice" if more[intent.seen] > 1 else None
        fired = tuple(more if n == intent.shard else each for n, each in enumerate(state.fired))
        return done._replace(fired=fired), wrong
    lease = state.leases[intent.shard]
    after = change(lease, intent, node)
    return _with_lease(done, intent.shard, after), _wrong(lease, after, intent, node)


def _wrong(lease: Held, after: Held, intent: Intent, node: int) -> str | None:
    if after.epoch < lease.epoch:
        return "an epoch fell"
    if after.owner not in (lease.owner, NOBODY) and after.epoch != lease.epoch + 1:
        return "a new owner under an old epoch"
    if after.owner == lease.owner and after.epoch != lease.epoch and lease.owner != node:
        return "an epoch rose without an owner"
    is_own = (lease.owner, lease.epoch) == (node, intent.seen)
    if intent.what in ("renew", "give") and after != lease and not is_own:
        return f"a stale {intent.what} changed a lease"
    has_time = lease.owner not in (NOBODY, node) and not lease.is_over
    if has_time and after.owner != lease.owner:
        return "a lease was taken that had not run out"
    return None


def _with_lease(state: State, shard: int, lease: Held) -> State:
    leases = tuple(lease if n == shard else each for n, each in enumerate(state.leases))
    return state._replace(leases=leases)


def _with_intent(state: State, place: int, intent: Intent | None) -> State:
    intents = tuple(intent if n == place else each for n, each in enumerate(state.intents))
    return state._replace(intents=intents)


def _without(state: State, place: int) -> State:
    """It is there again at once, as another; what it held is a dead one's."""
    leases = tuple(
        lease._replace(owner=DEAD) if lease.owner == place + 1 else lease for lease in state.leases
    )
    return _with_intent(state._replace(leases=leases), place, None)


def _smallest(state: State) -> State:
    """Nodes are alike: of all states that differ only in who is who, one stands for the others.
    A node is what it is about to do and which shards it owns; by that they are put in order."""
    owned: list[list[int]] = [[] for _ in state.intents]
    for shard, lease in enumerate(state.leases):
        if 0 < lease.owner <= len(owned):
            owned[lease.owner - 1].append(shard)
    keys = [(intent or NOTHING, each) for intent, each in zip(state.intents, owned, strict=True)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if order == list(range(len(keys))):
        return state
    return _renamed(state, tuple(order))


def _renamed(state: State, order: tuple[int, ...]) -> State:
    names = {old + 1: new + 1 for new, old in enumerate(order)}
    leases = tuple(
        lease._replace(owner=names.get(lease.owner, lease.owner)) for lease in state.leases
    )
    return State(leases, state.fired, tuple(state.intents[old] for old in order))


def _way(before: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    """Names of nodes may change on the way: each step is told as the state before it names them."""
    steps = []
    found = before[state]
    while found is not None:
        state, word = found
        steps.append(word)
        found = before[state]
    return tuple(reversed(steps))
