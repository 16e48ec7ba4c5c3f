"""Random graphs: orders are sound, closures complete, and a cycle is found if there is one."""

import graphlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.dag.graph import Graph, find_cycle
from foliot.core.dag.tasks import Task
from foliot.core.errors import CycleDetected
from foliot.core.model import HandlerTarget

NAMES = [f"t{i}" for i in range(9)]
Edges = dict[str, set[str]]


@st.composite
def acyclic(draw: st.DrawFn) -> Edges:
    """Dependencies that point backwards in a hidden order, handed over in another."""
    hidden = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    edges = {
        name: set(draw(st.lists(st.sampled_from(hidden[:place]), max_size=4))) if place else set()
        for place, name in enumerate(hidden)
    }
    return {name: edges[name] for name in draw(st.permutations(hidden))}


any_edges = st.dictionaries(
    st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES), max_size=3), min_size=1
)


def build(edges: Edges) -> Graph:
    target = HandlerTarget("work")
    return Graph.build(
        [Task(n, target=target, dependencies=tuple(sorted(d))) for n, d in edges.items()]
    )


def ancestors(edges: Edges, name: str) -> set[str]:
    return edges[name].union(*(ancestors(edges, parent) for parent in edges[name]))


@given(acyclic())
@settings(deadline=None, max_examples=300)
def test_the_order_has_every_task_once_and_parents_first(edges: Edges) -> None:
    order = build(edges).order
    assert sorted(order) == sorted(edges)
    place = {name: i for i, name in enumerate(order)}
    assert all(place[parent] < place[name] for name in edges for parent in edges[name])


@given(acyclic())
@settings(deadline=None, max_examples=300)
def test_levels_and_closures_equal_their_definitions(edges: Edges) -> None:
    graph = build(edges)
    level = {name: i for i, names in enumerate(graph.levels()) for name in names}
    for name, parents in edges.items():
        assert level[name] == max((level[parent] + 1 for parent in parents), default=0)
        assert graph.upstream(name) == ancestors(edges, name)
        below = {other for other in edges if name in ancestors(edges, other)}
        assert graph.downstream([name]) == below


@given(acyclic(), st.lists(st.integers(0, 50), min_size=len(NAMES), max_size=len(NAMES)))
@settings(deadline=None, max_examples=300)
def test_no_chain_is_heavier_than_the_critical_path(edges: Edges, weights: list[int]) -> None:
    seconds = dict(zip(NAMES, map(float, weights), strict=True))

    def heaviest(name: str) -> float:
        return seconds[name] + max((heaviest(parent) for parent in edges[name]), default=0)

    found = build(edges).critical_path(seconds)
    assert found.seconds == max(heaviest(name) for name in edges)
    assert found.seconds == sum(seconds[name] for name in found.tasks)
    assert all(a in edges[b] for a, b in pairwise(found.tasks))


def has_cycle(edges: Edges) -> bool:
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError:
        return True
    return False


@given(any_edges)
@settings(deadline=None, max_examples=800)
def test_a_cycle_is_found_exactly_when_there_is_one_and_is_real(edges: Edges) -> None:
    cycle = find_cycle(edges)
    assert (cycle is not None) == has_cycle(edges)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(b in edges[a] for a, b in pairwise(cycle))


@given(any_edges)
@settings(deadline=None, max_examples=300)
def test_the_same_edges_give_the_same_cycle(edges: Edges) -> None:
    backwards = {name: sorted(targets, reverse=True) for name, targets in edges.items()}
    assert find_cycle(edges) == find_cycle(backwards)


@given(any_edges)
@settings(deadline=None, max_examples=300)
def test_build_refuses_exactly_the_cyclic(edges: Edges) -> None:
    closed = {name: edges.get(name, set()) for name in NAMES}
    if not has_cycle(closed):
        build(closed)
        return
    with pytest.raises(CycleDetected) as refused:
        build(closed)
    assert all(b in closed[a] for a, b in pairwise(refused.value.cycle))
