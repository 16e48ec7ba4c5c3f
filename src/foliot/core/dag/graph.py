"""What a DAG is: tasks, what each depends on, and the orders that follow from it.

A Graph is valid once it exists: `Graph.build` refuses what cannot run and says which task and why.
Everything here is linear in tasks and dependencies, without recursion: ten thousand tasks in a row
or ten thousand parents of one task are ordinary.
"""

import difflib
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from types import MappingProxyType
from typing import Final

from foliot.core.dag.tasks import Task, check_task, references
from foliot.core.dag.trigger_rules import HASTY, TOLERANT, TriggerRule
from foliot.core.errors import CycleDetected, InvalidGraph

TASKS_MAX: Final = 10_000
_NAMED_IN_MESSAGE: Final = 10


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The chain of tasks that took longest: shorten one of these, or nothing gets faster."""

    tasks: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Graph:
    """Tasks by name in the order given, their children, and an order that respects both.

    `survivors` are the tasks that a failing run lets go on: clean-up, fallback and alert tasks,
    known by their trigger rule, with all that is downstream of them.
    """

    tasks: Mapping[str, Task]
    children: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    survivors: frozenset[str]

    @classmethod
    def build(cls, tasks: Sequence[Task]) -> "Graph":
        """The graph of these tasks, or InvalidGraph, InvalidExpression or CycleDetected."""
        by_name = _check_alone(tasks)
        for position, task in enumerate(tasks):
            _check_dependencies(task, by_name, f"tasks[{position}].dependencies")
        children = _children(by_name)
        order = _topological_order(by_name, children)
        if len(order) < len(by_name):
            raise _cycle_error(by_name)
        _check_references(by_name, order)
        tolerant = [task.name for task in tasks if task.trigger_rule in TOLERANT]
        return cls(
            tasks=MappingProxyType(by_name),
            children=MappingProxyType(children),
            order=order,
            survivors=frozenset(tolerant) | _reachable(children, tolerant),
        )

    def upstream(self, name: str) -> frozenset[str]:
        """Everything `name` depends on, directly or not."""
        return _reachable({n: t.dependencies for n, t in self.tasks.items()}, [name])

    def downstream(self, names: Iterable[str]) -> frozenset[str]:
        """Everything that depends on one of `names`, directly or not."""
        return _reachable(self.children, names)

    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Tasks by the longest way to them from a root: a level needs only earlier levels."""
        level_of: dict[str, int] = {}
        levels: list[list[str]] = []
        for name in self.order:
            parents = self.tasks[name].dependencies
            level = level_of[name] = 1 + max((level_of[parent] for parent in parents), default=-1)
            if level == len(levels):
                levels.append([])
            levels[level].append(name)
        return tuple(tuple(level) for level in levels)

    def critical_path(self, seconds: Mapping[str, float]) -> CriticalPath:
        """The heaviest chain; a task without a duration weighs nothing, a tie goes to the first."""
        total: dict[str, float] = {}
        before: dict[str, str | None] = {}
        for name in self.order:
            parents = self.tasks[name].dependencies
            heaviest = max(parents, key=lambda parent: total[parent], default=None)
            before[name] = heaviest
            total[name] = seconds.get(name, 0) + (total[heaviest] if heaviest else 0)
        last = max(self.order, key=lambda name: total[name])
        path: list[str] = []
        name_on_path: str | None = last
        while name_on_path is not None:
            path.append(name_on_path)
            name_on_path = before[name_on_path]
        return CriticalPath(tuple(reversed(path)), total[last])


def find_cycle(edges: Mapping[str, Collection[str]]) -> tuple[str, ...] | None:
    """A cycle that follows `edges`, closed by the name it begins with, or None if there is none.

    The same edges give the same cycle, whatever order a set hands its members out in. It is the
    shortest through its first name. A name without an entry leads nowhere.
    """
    ordered = {name: sorted(targets) for name, targets in edges.items()}
    found = _any_cycle(ordered)
    if found is None:
        return None
    members = set(found)
    first = next(name for name in ordered if name in members)
    return _shortest_cycle_through(first, ordered)


def _check_alone(tasks: Sequence[Task]) -> dict[str, Task]:
    if not tasks:
        raise InvalidGraph("a DAG without tasks has nothing to run", hint="add a task")
    if len(tasks) > TASKS_MAX:
        hint = "split it with sub_dag, or fan out over a list"
        raise InvalidGraph(f"{len(tasks):,} tasks are more than {TASKS_MAX:,}", hint=hint)
    by_name: dict[str, Task] = {}
    for position, task in enumerate(tasks):
        check_task(task, f"tasks[{position}]")
        if task.name in by_name:
            first = list(by_name).index(task.name)
            raise InvalidGraph(
                f"{task.name!r} is already the name of tasks[{first}]",
                field=f"tasks[{position}].name",
                hint="give each task a name of its own",
                tasks=(task.name,),
            )
        by_name[task.name] = task
    return by_name


def _check_dependencies(task: Task, by_name: Mapping[str, Task], field: str) -> None:
    seen: set[str] = set()
    for parent in task.dependencies:
        if parent == task.name:
            raise CycleDetected(
                reason=f"{task.name!r} depends on itself",
                field=field,
                hint=f"remove {parent!r}",
                cycle=(task.name, task.name),
            )
        if parent in seen:
            reason = f"{task.name!r} names {parent!r} twice"
            raise InvalidGraph(reason, field, "name each dependency once", (parent,))
        seen.add(parent)
        if parent not in by_name:
            reason = f"{task.name!r} depends on {parent!r}, which is not a task"
            others = [name for name in by_name if name != task.name]
            raise InvalidGraph(reason, field, _suggestion(parent, others), (parent,))


def _check_references(by_name: Mapping[str, Task], order: Sequence[str]) -> None:
    """A result can be read only where its task has surely ended: elsewhere it may not be there."""
    distant: list[tuple[Task, str, str]] = []
    for position, task in enumerate(by_name.values()):
        parents = frozenset(task.dependencies)
        for field, path in references(task, f"tasks[{position}]"):
            if path.task is None:
                continue
            if path.task not in by_name:
                reason = f"{path.text} reads {path.task!r}, which is not a task"
                raise InvalidGraph(reason, field, _suggestion(path.task, by_name), (path.task,))
            if path.task not in parents or task.trigger_rule in HASTY:
                distant.append((task, path.task, field))
    if not distant:
        return
    bit, ended = _ended_masks(by_name, order)
    for task, named, field in distant:
        if not ended[task.name] & bit[named]:
            raise _too_early(task, named, field, by_name)


def _too_early(task: Task, named: str, field: str, by_name: Mapping[str, Task]) -> InvalidGraph:
    upstream = _reachable({name: each.dependencies for name, each in by_name.items()}, [task.name])
    hint = f"add {named!r} to the dependencies of {task.name!r}"
    if named not in upstream:
        reason = f"{task.name!r} reads the result of {named!r} but does not come after it"
    elif task.trigger_rule in HASTY:
        reason = (
            f"{task.name!r} does not wait for all of its parents ({task.trigger_rule}), so the"
            f" result of {named!r} may not be there yet"
        )
        hint = "use a rule that waits for every parent, such as ALL_DONE"
    else:
        reason = (
            f"a task between {named!r} and {task.name!r} may end or start without waiting for"
            f" {named!r}, so its result may not be there yet"
        )
    return InvalidGraph(reason, field, hint, (task.name, named))


def _ended_masks(
    by_name: Mapping[str, Task], order: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Each task's bit, and the bits of all that has surely ended when it starts.

    What a parent waited for has ended only if the parent itself ran: one that is skipped, cancelled
    or failed by its own parents ends while others upstream may still run. 12 MB at most.
    """
    bit = {name: 1 << place for place, name in enumerate(order)}
    ended: dict[str, int] = {}
    for name in order:
        parents = by_name[name].dependencies
        ran = [bit[parent] | ended[parent] for parent in parents]
        ended[name] = _ended_before(by_name[name].trigger_rule, [bit[p] for p in parents], ran)
    return bit, ended


def _ended_before(rule: TriggerRule, parents: Sequence[int], ran: Sequence[int]) -> int:
    """`parents` are the parents' own bits, `ran` also those of all that ended before they ran."""
    match rule:
        case TriggerRule.ALL_SUCCESS:
            return reduce(or_, ran, 0)
        case TriggerRule.ONE_SUCCESS:
            return reduce(and_, ran) if ran else 0
        case TriggerRule.ONE_FAILED:
            return parents[0] if len(parents) == 1 else 0
        case TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS:
            return reduce(or_, parents, reduce(and_, ran) if ran else 0)
        case TriggerRule.ALWAYS:
            return 0
        case _:
            return reduce(or_, parents, 0)


def _suggestion(unknown: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(unknown, names, n=1)
    return f"did you mean {close[0]!r}?" if close else "add the task, or remove the name"


def _cycle_error(by_name: Mapping[str, Task]) -> CycleDetected:
    cycle = find_cycle({name: task.dependencies for name, task in by_name.items()}) or ()
    shown = cycle if len(cycle) <= _NAMED_IN_MESSAGE else (*cycle[:_NAMED_IN_MESSAGE], "…")
    return CycleDetected(
        reason=f"{' needs '.join(shown)}: a cycle of {len(cycle) - 1} tasks can never start",
        field=f"tasks[{list(by_name).index(cycle[0])}].dependencies",
        hint=f"remove one of these dependencies, for instance {cycle[1]!r} from {cycle[0]!r}",
        cycle=cycle,
    )


def _children(tasks: Mapping[str, Task]) -> dict[str, tuple[str, ...]]:
    gathered: dict[str, list[str]] = {name: [] for name in tasks}
    for name, task in tasks.items():
        for parent in task.dependencies:
            gathered[parent].append(name)
    return {name: tuple(children) for name, children in gathered.items()}


def _topological_order(
    tasks: Mapping[str, Task], children: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Parents first, else in the order given; tasks in or behind a cycle are left out."""
    pending = {name: len(task.dependencies) for name, task in tasks.items()}
    ready = deque(name for name, count in pending.items() if count == 0)
    order: list[str] = []
    while ready:
        name = ready.popleft()
        order.append(name)
        for child in children[name]:
            pending[child] -= 1
            if pending[child] == 0:
                ready.append(child)
    return tuple(order)


def _reachable(edges: Mapping[str, Collection[str]], names: Iterable[str]) -> frozenset[str]:
    """What can be reached from `names` in one step or more."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        for target in edges[waiting.pop()]:
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return frozenset(seen)


def _any_cycle(edges: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Depth first, with the trail kept by hand: a name met again on the trail closes a cycle."""
    done: set[str] = set()
    for start in edges:
        trail = [start]
        on_trail = {start}
        branches = [iter(() if start in done else edges[start])]
        while branches:
            target = next(branches[-1], None)
            if target is None:
                branches.pop()
                done.add(trail[-1])
                on_trail.discard(trail.pop())
            elif target in on_trail:
                return trail[trail.index(target) :]
            elif target not in done and target in edges:
                trail.append(target)
                on_trail.add(target)
                branches.append(iter(edges[target]))
    return None


def _shortest_cycle_through(first: str, edges: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Breadth first from `first` back to it; there is a way, or this is not called."""
    came_from: dict[str, str] = {}
    waiting = deque([first])
    while first not in came_from:
        name = waiting.popleft()
        for target in edges.get(name, ()):
            if target not in came_from:
                came_from[target] = name
                waiting.append(target)
    path = [first]
    name = came_from[first]
    while name != first:
        path.append(name)
        name = came_from[name]
    return (first, *reversed(path[1:]), first)
