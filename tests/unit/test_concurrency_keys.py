import pytest

from foliot.core.concurrency_keys import (
    KEY_LENGTH_MAX,
    TEMPLATE_LENGTH_MAX,
    check_key_template,
    resolve_key,
)
from foliot.core.errors import InvalidInput, UnresolvedKey
from foliot.core.model import Json

PAYLOAD = {
    "tenant": 7,
    "region": "eu",
    "dry": False,
    "ratio": 0.5,
    "none": None,
    "user": {"id": "u-1", "tags": ["a", "b"]},
    "long": "x" * 300,
    "empty": "",
    "nul": "a\x00b",
}


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("crm", "crm"),
        ("costs $5 {a}", "costs $5 {a}"),
        ("${payload.tenant}", "7"),
        ("tenant=${payload.tenant}", "tenant=7"),
        ("${payload.region}/${payload.user.id}", "eu/u-1"),
        ("${payload.dry}", "false"),
        ("${payload.ratio}", "0.5"),
        ("${payload.user.tags.1}", "b"),
        ("x${payload.empty}", "x"),
    ],
)
def test_a_key_is_text_with_values_of_the_payload(template: str, key: str) -> None:
    assert resolve_key(template, PAYLOAD) == key


def test_a_payload_that_is_one_value_can_be_the_key() -> None:
    assert resolve_key("${payload}", "eu") == "eu"


@pytest.mark.parametrize(
    ("template", "payload", "path", "reason"),
    [
        ("${payload.team}", PAYLOAD, "payload.team", "is missing"),
        ("${payload.user.name.x}", PAYLOAD, "payload.user.name.x", "is missing"),
        ("${payload.region.x}", PAYLOAD, "payload.region.x", "is missing"),
        ("${payload.user.tags.2}", PAYLOAD, "payload.user.tags.2", "is missing"),
        ("${payload.user.tags.-1}", PAYLOAD, "payload.user.tags.-1", "is missing"),
        ("${payload.none}", PAYLOAD, "payload.none", "is null"),
        ("${payload.user}", PAYLOAD, "payload.user", "is an object"),
        ("${payload.user.tags}", PAYLOAD, "payload.user.tags", "is a list"),
        ("${payload.nul}", PAYLOAD, "payload.nul", "cannot be stored"),
        ("${payload.x}", None, "payload.x", "is missing"),
    ],
)
def test_a_value_that_cannot_be_a_key_is_named_by_its_path(
    template: str, payload: Json, path: str, reason: str
) -> None:
    with pytest.raises(UnresolvedKey) as caught:
        resolve_key(template, payload)
    assert caught.value.path == path
    assert reason in str(caught.value)
    assert caught.value.field == "concurrency.key"


@pytest.mark.parametrize("template", ["${payload.long}", "${payload.empty}"])
def test_a_key_of_impossible_length_is_refused(template: str) -> None:
    with pytest.raises(UnresolvedKey) as caught:
        resolve_key(template, PAYLOAD)
    assert str(KEY_LENGTH_MAX) in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "",
        "x" * (KEY_LENGTH_MAX + 1),
        "${payload.a}" + "x" * TEMPLATE_LENGTH_MAX,
        "${payload.tenant",
        "a${b${payload.c}}",
        "${secrets.TOKEN}",
        "${payload.}",
        "${payload..a}",
        "${}",
        "${payloads.a}",
        "nul \x00",
        "surrogate \ud800",
    ],
)
def test_a_key_that_no_payload_can_fill_is_refused_when_saved(template: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_key_template(template)
    assert caught.value.field == "concurrency.key"
    assert caught.value.hint
