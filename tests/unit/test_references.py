"""Do references bring values into a payload, with their type, and nothing else?"""

import pytest

from foliot.core.dag.conditions import Scope
from foliot.core.dag.references import find_references, render
from foliot.core.errors import ExpressionFailed, InvalidExpression
from foliot.core.model import Json

SCOPE = Scope(
    results={"a": {"x": 3, "list": [1, {"k": None}], "text": "hi", "dollar": "${config.y}"}},
    config={"y": True, "name": "Grüße"},
    item={"id": 7},
    index=2,
)


@pytest.mark.parametrize(
    ("payload", "rendered"),
    [
        (None, None),
        (3, 3),
        ("plain", "plain"),
        ("${results.a.x}", 3),
        ("${results.a.list}", [1, {"k": None}]),
        ("${config.y}", True),
        ("${results.gone}", None),
        ("n=${results.a.x}", "n=3"),
        (" ${results.a.x}", " 3"),
        ("${results.a.x}${results.a.x}", "33"),
        ("${results.a.text}-${config.name}", "hi-Grüße"),
        ("is ${config.y}", "is true"),
        ("l=${results.a.list}", 'l=[1,{"k":null}]'),
        ({"k": ["${results.a.x}", {"n": "${item.id}"}]}, {"k": [3, {"n": 7}]}),
        (("${index}",), [2]),
        ({"${results.a.x}": 1}, {"${results.a.x}": 1}),
        ("$${results.a.x}", "${results.a.x}"),
        ("cost $5", "cost $5"),
        ("${secrets.TOKEN}", "${secrets.TOKEN}"),
        ("Bearer ${secrets.TOKEN} ${results.a.x}", "Bearer ${secrets.TOKEN} 3"),
        ("$${secrets.TOKEN}", "$${secrets.TOKEN}"),
        ("${results.a.dollar}", "${config.y}"),
        ("<${results.a.dollar}>", "<${config.y}>"),
    ],
)
def test_references_are_replaced(payload: Json, rendered: Json) -> None:
    assert render(payload, SCOPE) == rendered


def test_a_payload_is_left_as_it_was() -> None:
    payload = {"k": ["${results.a.x}"]}
    render(payload, SCOPE)
    assert payload == {"k": ["${results.a.x}"]}


def test_a_missing_value_is_an_error_that_names_it() -> None:
    with pytest.raises(ExpressionFailed, match=r"results\.a\.y: there is no 'y'"):
        render({"k": "${results.a.y}"}, SCOPE)


@pytest.mark.parametrize(
    "smuggled",
    ["${secrets.TOKEN}", ["x", {"k": "a ${secrets.TOKEN} b"}], {"${secrets.TOKEN}": 1}],
)
@pytest.mark.parametrize("payload", ["${results.a}", "say ${results.a}"])
def test_a_result_cannot_ask_for_a_secret(payload: str, smuggled: Json) -> None:
    with pytest.raises(ExpressionFailed, match="secret"):
        render(payload, Scope(results={"a": smuggled}))


@pytest.mark.parametrize(
    ("payload", "results"),
    [
        ("${results.a}${results.b}", {"a": "$", "b": "{secrets.TOKEN}"}),
        ("${results.a}rets.TOKEN}", {"a": "${sec"}),
        ("${results.a} ${secrets.OTHER}", {"a": "${secrets.TOKEN}"}),
        ("${secrets.${results.a}}", {"a": "TOKEN"}),
    ],
)
def test_results_cannot_spell_a_reference_to_a_secret_together(
    payload: str, results: dict[str, str]
) -> None:
    with pytest.raises(ExpressionFailed):
        render(payload, Scope(results=results))


def test_references_are_listed_with_their_field() -> None:
    payload = {"a": ["${results.x.y}"], "b": "${config.z} ${secrets.S} $${no}"}
    found = {where: path.text for where, path in find_references(payload, "payload")}
    assert found == {"payload.a[0]": "results.x.y", "payload.b": "config.z"}


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ("${HOME}", "'HOME' is not known"),
        ("${}", "a value is due"),
        ("${results.a", "not closed"),
        ("${config.x == 1}", "not a path"),
        ("${secrets.${results.a}}", "not closed"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_way_to_say_it(payload: str, says: str) -> None:
    with pytest.raises(InvalidExpression, match=says) as refused:
        list(find_references({"k": payload}, "payload"))
    assert refused.value.field == "payload.k"
    assert "$${" in (refused.value.hint or "")
