"""Is a DAG that can run accepted, is one that cannot refused with the field and the fix?"""

import time

import pytest

from foliot.core.dag.fan_out import FanOut
from foliot.core.dag.graph import TASKS_MAX, Graph, find_cycle
from foliot.core.dag.tasks import Task, WaitFor
from foliot.core.dag.trigger_rules import TriggerRule
from foliot.core.errors import CycleDetected, InvalidGraph, InvalidInput
from foliot.core.model import HandlerTarget, Json


def step(
    name: str,
    *dependencies: str,
    rule: TriggerRule = TriggerRule.ALL_SUCCESS,
    payload: Json = None,
    condition: str | None = None,
    fan_out: FanOut | None = None,
) -> Task:
    return Task(
        name,
        target=HandlerTarget("work"),
        dependencies=dependencies,
        trigger_rule=rule,
        payload=payload,
        condition=condition,
        fan_out=fan_out,
    )


R = TriggerRule
READS_B = "results.b.rows > 1"
WAREHOUSE = (
    step("report", "aggregate"),
    step("extract"),
    step("transform", "extract"),
    step("load_dim", "transform"),
    step("load_fact", "transform"),
    step("aggregate", "load_dim", "load_fact"),
)


def test_parents_come_before_children_and_else_the_order_given_holds() -> None:
    graph = Graph.build(WAREHOUSE)
    expected = ("extract", "transform", "load_dim", "load_fact", "aggregate", "report")
    assert graph.order == expected


def test_levels_group_what_may_run_side_by_side() -> None:
    assert Graph.build(WAREHOUSE).levels() == (
        ("extract",),
        ("transform",),
        ("load_dim", "load_fact"),
        ("aggregate",),
        ("report",),
    )


def test_closures_leave_the_task_itself_out() -> None:
    graph = Graph.build(WAREHOUSE)
    assert graph.upstream("load_fact") == {"extract", "transform"}
    assert graph.downstream(["load_dim", "load_fact"]) == {"aggregate", "report"}
    assert graph.upstream("extract") == frozenset()


def test_the_critical_path_is_the_heaviest_chain() -> None:
    seconds = {"extract": 5.0, "transform": 1.0, "load_dim": 2.0, "load_fact": 9.0, "report": 1.0}
    path = Graph.build(WAREHOUSE).critical_path(seconds)
    assert path.tasks == ("extract", "transform", "load_fact", "aggregate", "report")
    assert path.seconds == 16.0


def test_a_tie_on_the_critical_path_goes_to_the_first() -> None:
    path = Graph.build(WAREHOUSE).critical_path({})
    assert path.tasks == ("extract",)
    assert path.seconds == 0


def test_clean_up_tasks_and_what_follows_them_survive_a_failure() -> None:
    graph = Graph.build(
        [
            step("work"),
            step("more", "work"),
            step("drop_cluster", "more", rule=TriggerRule.ALL_DONE),
            step("alert", "work", rule=TriggerRule.ONE_FAILED),
            step("say_goodbye", "drop_cluster"),
        ]
    )
    assert graph.survivors == {"drop_cluster", "alert", "say_goodbye"}


@pytest.mark.parametrize(
    ("tasks", "field", "says"),
    [
        ([], "tasks", "without tasks"),
        ([step("a"), step("b"), step("a")], "tasks[2].name", "tasks[0]"),
        ([step("load"), step("x", "laod")], "tasks[1].dependencies", "did you mean 'load'?"),
        ([step("a"), step("x", "nothing_like_it")], "tasks[1].dependencies", "not a task"),
        ([step("a"), step("b", "a", "a")], "tasks[1].dependencies", "twice"),
        ([step("a b")], "tasks[0].name", "no name"),
        ([step("")], "tasks[0].name", "no name"),
        ([step("a[0]")], "tasks[0].name", "no name"),
        ([step("a/b")], "tasks[0].name", "no name"),
        ([step("a\n")], "tasks[0].name", "no name"),
        ([step("a" * 201)], "tasks[0].name", "no name"),
        ([Task("a")], "tasks[0]", "nothing to run"),
        ([Task("a", job="j", sub_dag="d")], "tasks[0]", "job and sub_dag"),
        ([Task("a", job="j", timeout_seconds=0)], "tasks[0].timeout_seconds", "above 0"),
        ([Task("a", job="j", timeout_seconds=float("inf"))], "tasks[0].timeout_seconds", "inf"),
        ([Task("a", job="j", timeout_seconds=float("nan"))], "tasks[0].timeout_seconds", "nan"),
        ([Task("a", wait_for=WaitFor("ok", 0))], "tasks[0].wait_for.timeout_seconds", "above 0"),
        ([Task("a", wait_for=WaitFor(""))], "tasks[0].wait_for.event", "no name"),
        (
            [Task("a", wait_for=WaitFor("ok"), fan_out=FanOut("config.x"))],
            "tasks[0].fan_out",
            "comes once",
        ),
        (
            [step("a", fan_out=FanOut("config.x", max_concurrency=0))],
            "tasks[0].fan_out.max_concurrency",
            "at least 1",
        ),
        ([step("a", fan_out=FanOut("config.x > 3"))], "tasks[0].fan_out.over", "not a path"),
        ([step("a", condition="config.x >")], "tasks[0].condition", "position 10"),
        ([step("a", payload={"x": ["${confg.y}"]})], "tasks[0].payload.x[0]", "'confg'"),
        ([step("a", payload="${config.y")], "tasks[0].payload", "not closed"),
        ([step("a"), step("b", condition="results.a.x == 1")], "tasks[1].condition", "add 'a'"),
        ([step("a"), step("b", "a", payload="${results.aa}")], "tasks[1].payload", "mean 'a'"),
        ([step("a", payload="${results.a}")], "tasks[0].payload", "does not come after"),
        (
            [step("a"), step("b"), step("c", "a", "b", rule=R.ONE_SUCCESS, payload="${results.b}")],
            "tasks[2].payload",
            "does not wait for all of its parents (ONE_SUCCESS)",
        ),
        (
            [step("a"), step("b"), step("c", "a", "b", rule=R.ONE_FAILED, condition=READS_B)],
            "tasks[2].condition",
            "such as ALL_DONE",
        ),
        (
            [step("b"), step("a", "b", rule=R.ALWAYS), step("c", "a", payload="${results.b}")],
            "tasks[2].payload",
            "a task between 'b' and 'c' may end or start without waiting for 'b'",
        ),
        (
            [step("b"), step("a", "b"), step("c", "a", rule=R.ALL_DONE, payload="${results.b}")],
            "tasks[2].payload",
            "add 'b' to the dependencies of 'c'",
        ),
        (
            [step("b"), step("a", "b"), step("c", "a", rule=R.ONE_FAILED, payload="${results.b}")],
            "tasks[2].payload",
            "does not wait for all of its parents (ONE_FAILED)",
        ),
        ([step("a", payload="${item}")], "tasks[0].payload", "no value here"),
        (
            [step("a", condition="index == 1", fan_out=FanOut("config.x"))],
            "tasks[0].condition",
            "no value here",
        ),
        (
            [step("a"), step("b", "a", rule=TriggerRule.ALWAYS, payload="${results.a}")],
            "tasks[1].payload",
            "ALL_DONE",
        ),
    ],
)
def test_what_cannot_run_is_refused_with_its_field(
    tasks: list[Task], field: str, says: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        Graph.build(tasks)
    assert refused.value.field == field
    assert refused.value.hint
    assert says in str(refused.value)


def test_a_payload_nested_without_end_is_refused() -> None:
    payload: Json = "x"
    for _ in range(5000):
        payload = [payload]
    with pytest.raises(InvalidInput, match="nested too deeply"):
        Graph.build([step("a", payload=payload)])


def test_the_error_names_the_tasks_for_programs_too() -> None:
    with pytest.raises(InvalidGraph) as refused:
        Graph.build([step("a"), step("b", "c")])
    assert refused.value.tasks == ("c",)


def test_results_may_be_read_from_far_upstream() -> None:
    reading = step("c", "b", payload={"rows": "${results.a.rows}"}, condition="results.b.ok")
    graph = Graph.build([reading, step("b", "a"), step("a")])
    assert graph.order == ("a", "b", "c")


def test_a_cycle_is_refused_and_named() -> None:
    with pytest.raises(CycleDetected) as refused:
        Graph.build(
            [step("x"), step("a", "b", "x"), step("b", "c"), step("c", "a"), step("d", "c")]
        )
    assert refused.value.cycle == ("a", "b", "c", "a")
    assert refused.value.field == "tasks[1].dependencies"
    assert "a needs b needs c needs a" in str(refused.value)


def test_a_task_that_depends_on_itself_is_a_cycle() -> None:
    with pytest.raises(CycleDetected) as refused:
        Graph.build([step("x"), step("a", "a")])
    assert refused.value.cycle == ("a", "a")
    assert refused.value.field == "tasks[1].dependencies"
    assert "'a' depends on itself" in str(refused.value)


def test_a_task_is_never_advised_to_depend_on_itself() -> None:
    with pytest.raises(InvalidGraph) as refused:
        Graph.build([step("extract_all", "extract_al"), step("z")])
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize(
    "tasks",
    [
        [step("b"), step("a", "b"), step("c", "a", payload="${results.b}")],
        [step("b"), step("c", "b", rule=R.ONE_SUCCESS, payload="${results.b}")],
        [step("b"), step("c", "b", rule=R.ONE_FAILED, payload="${results.b}")],
        [
            step("b"),
            step("x", "b"),
            step("y", "b"),
            step("c", "x", "y", rule=R.ONE_SUCCESS, payload="${results.b}"),
        ],
        [
            step("b"),
            step("x", "b"),
            step("y", "b"),
            step("c", "x", "y", rule=R.NONE_FAILED_MIN_ONE_SUCCESS, condition=READS_B),
        ],
        [step("b"), step("a", "b"), step("c", "a", "b", rule=R.ALL_DONE, payload="${results.b}")],
        [step("a"), step("b"), step("c", "a", "b", rule=R.NONE_FAILED, payload="${results.b}")],
        [step("a"), step("b"), step("c", "a", "b", rule=R.ALL_FAILED, payload="${results.b}")],
    ],
)
def test_a_result_that_is_surely_there_can_be_read(tasks: list[Task]) -> None:
    assert "c" in Graph.build(tasks).tasks


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ({}, None),
        ({"a": {"b"}, "b": ()}, None),
        ({"a": ("unknown",)}, None),
        ({"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}, None),
        ({"a": {"a"}}, ("a", "a")),
        ({"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": ["a"]}, ("b", "c", "b")),
        ({"a": {"b", "c"}, "b": {"c"}, "c": {"a"}}, ("a", "c", "a")),
    ],
)
def test_find_cycle_gives_the_shortest_through_its_first_name(
    edges: dict[str, set[str]], cycle: tuple[str, ...] | None
) -> None:
    assert find_cycle(edges) == cycle


def test_find_cycle_visits_each_name_once_however_many_ways_lead_to_it() -> None:
    ladder = {f"{side}{i}": (f"a{i + 1}", f"b{i + 1}") for i in range(100) for side in "ab"}
    assert find_cycle(ladder) is None


def test_ten_thousand_tasks_are_accepted_and_one_more_is_not() -> None:
    tasks = [step(f"t{i}") for i in range(TASKS_MAX)]
    assert len(Graph.build(tasks).order) == TASKS_MAX
    with pytest.raises(InvalidGraph, match="10,001 tasks") as refused:
        Graph.build([*tasks, step("one_more")])
    assert refused.value.field == "tasks"


CHAIN = [step("t0"), *(step(f"t{i}", f"t{i - 1}") for i in range(1, TASKS_MAX))]
FAN_IN = [step(f"t{i}") for i in range(TASKS_MAX - 1)]
FAN_IN.append(step("join", *(task.name for task in FAN_IN)))
FAR_READING = [
    step("t0"),
    *(step(f"t{i}", f"t{i - 1}", payload="${results.t0}") for i in range(1, TASKS_MAX)),
]


@pytest.mark.parametrize("tasks", [CHAIN, FAN_IN, FAR_READING], ids=["chain", "fan_in", "reading"])
def test_ten_thousand_tasks_validate_in_under_a_second(tasks: list[Task]) -> None:
    before = time.process_time()
    Graph.build(tasks).levels()
    assert time.process_time() - before < 1


def test_a_cycle_of_ten_thousand_is_found_in_under_a_second_and_said_briefly() -> None:
    before = time.process_time()
    with pytest.raises(CycleDetected) as refused:
        Graph.build([step("t0", f"t{TASKS_MAX - 1}"), *CHAIN[1:]])
    assert time.process_time() - before < 1
    assert len(refused.value.cycle) == TASKS_MAX + 1
    assert len(str(refused.value)) < 400
