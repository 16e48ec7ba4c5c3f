"""References to secrets: found, checked, filled in once."""

from dataclasses import replace

import pytest

from foliot.core.errors import InvalidInput, PayloadTooLarge
from foliot.core.model import CommandTarget, HandlerTarget, HttpTarget, Json, Target
from foliot.core.secret_references import (
    ADDED_CHARS_MAX,
    check_growth,
    check_job,
    check_name,
    check_references,
    is_any_in,
    names_in,
    substitute,
    substitute_command,
    substitute_http,
)
from foliot.testing.jobs import new_job

VALUES = {"TOKEN": "t0k", "_A1": "${secrets.TOKEN}", "USER": "me"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${secrets.TOKEN}", "t0k"),
        ("Bearer ${secrets.TOKEN}", "Bearer t0k"),
        ("${secrets.USER}:${secrets.TOKEN}", "me:t0k"),
        ("${secrets.TOKEN}${secrets.TOKEN}", "t0kt0k"),
        # What a value holds is not searched again.
        ("${secrets._A1}", "${secrets.TOKEN}"),
        ("$${secrets.TOKEN}", "${secrets.TOKEN}"),
        ("$${secrets.TOKEN} ${secrets.TOKEN}", "${secrets.TOKEN} t0k"),
        # Nothing of ours.
        (
            "${HOME} $HOME ${other.TOKEN} $${x} {secrets.TOKEN}",
            "${HOME} $HOME ${other.TOKEN} $${x} {secrets.TOKEN}",
        ),
        ("", ""),
    ],
)
def test_a_reference_is_filled_in_once(text: str, filled: str) -> None:
    assert substitute(text, VALUES) == filled
    assert substitute({"a": [text, 1, None]}, VALUES) == {"a": [filled, 1, None]}


def test_every_text_in_a_payload_is_searched_and_no_name() -> None:
    payload = {"a": ["${secrets.A}", {"b": "x ${secrets.B}"}], "${secrets.C}": True, "d": 1.5}
    assert names_in(payload) == {"A", "B"}
    assert names_in("${secrets.A}", ("${secrets.D}",), None) == {"A", "D"}
    assert names_in("$${secrets.A}") == frozenset()
    assert is_any_in("$${secrets.A}")
    assert not is_any_in({"a": ["${HOME}", 5]})


def test_targets_are_filled_in_with_all_their_parts() -> None:
    http = HttpTarget("https://h/${secrets.USER}", "PUT", {"X": "Bearer ${secrets.TOKEN}"})
    assert substitute_http(http, VALUES) == HttpTarget("https://h/me", "PUT", {"X": "Bearer t0k"})
    command = CommandTarget(("run", "--as=${secrets.USER}"), {"T": "${secrets.TOKEN}"})
    assert substitute_command(command, VALUES) == CommandTarget(("run", "--as=me"), {"T": "t0k"})


@pytest.mark.parametrize(
    "text",
    [
        "${secrets.token}",
        "${secrets.1A}",
        "${secrets.A B}",
        "${secrets.}",
        "${secrets}",
        "${secrets.A",
        "${ secrets.A}",
        "${secret.A}",
        "${Secrets.A}",
        "${secrets.A.B}",
        "${secrets-A}",
        f"${{secrets.{'A' * 129}}}",
        "${secrets.A} and ${secrets.b}",
    ],
)
def test_what_looks_like_a_reference_and_is_none_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a reference to a secret") as refused:
        check_references({"a": [1, {"b": text}]}, "payload")
    assert refused.value.field == "payload.a[1].b"
    assert "${secrets.NAME}" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "value",
    [
        "${secrets.A}",
        f"${{secrets.{'A' * 128}}}",
        "$${secrets.lower}",
        "$${secrets.A}",
        "${HOME} ${secretary} ${secret_key}",
        {"x": ["${secrets.A}${secrets._9}"]},
        None,
        3,
    ],
)
def test_references_and_other_texts_are_accepted(value: Json) -> None:
    check_references(value, "payload")


def test_a_name_of_a_field_holds_no_reference() -> None:
    with pytest.raises(InvalidInput, match="a name cannot hold") as refused:
        check_references({"a": {"${secrets.A}": 1}}, "payload")
    assert refused.value.field == "payload.a"


@pytest.mark.parametrize(
    ("target", "field"),
    [
        (HttpTarget("https://h/${secrets.a}"), "target.url"),
        (HttpTarget("https://h/${tenant}"), "target.url"),
        (HttpTarget("https://h", headers={"X-Key": "${env.KEY}"}), "target.headers.X-Key"),
        (CommandTarget(("run", "${secrets.a}")), "target.argv[1]"),
        (CommandTarget(("run",), {"KEY": "${secret.A}"}), "target.env.KEY"),
    ],
)
def test_a_target_is_checked_part_by_part(target: Target, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_job(new_job(target=target))
    assert refused.value.field == field
    assert refused.value.hint


def test_a_whole_job_is_checked() -> None:
    good = new_job(
        target=HttpTarget("${secrets.URL}", headers={"A": "Bearer ${secrets.T}"}),
        payload={"a": "${secrets.T}"},
        callback_url="https://h/${secrets.T}",
    )
    check_job(good)
    check_job(replace(good, target=CommandTarget(("sh", "-c", "echo ${HOME}"))))
    check_job(replace(good, target=HandlerTarget("work"), payload="${name}"))
    for wrong, field in (
        ({"payload": ["${secrets.t}"]}, "payload[0]"),
        ({"callback_url": "${x}"}, "callback_url"),
    ):
        with pytest.raises(InvalidInput) as refused:
            check_job(replace(good, **wrong))
        assert refused.value.field == field


@pytest.mark.parametrize("name", ["A", "_", "A1_B", "A" * 128])
def test_names_that_can_be_used(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "a", "1A", "A-B", "A B", "Ä", "A\n", "A" * 129])
def test_a_name_that_cannot_be_used_is_not_repeated(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_name(name)
    assert str(refused.value) == (
        "name: is not a name of a secret (use capitals, digits and _, no digit first, at most 128)"
    )


def test_a_payload_that_would_grow_without_measure_is_refused() -> None:
    values = {"BIG": "x" * 65_536}
    check_growth(values, ["${secrets.BIG}"] * 4)
    with pytest.raises(PayloadTooLarge, match=str(ADDED_CHARS_MAX)):
        check_growth(values, ["${secrets.BIG}"] * 2, "${secrets.BIG}" * 3)
