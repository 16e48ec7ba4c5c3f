"""From the settings to where callbacks may go."""

from ipaddress import ip_address

import pytest

from foliot.core.addresses import refusal
from foliot.core.errors import InvalidInput
from foliot.settings import Settings, load_settings
from foliot.wiring.callbacks import callback_allow, local_openings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FOLIOT_{name.upper()}", raising=False)


def test_nothing_inside_is_open_unless_the_operator_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = ip_address("10.2.0.7")
    assert refusal(inner, callback_allow(load_settings({})))
    monkeypatch.setenv("FOLIOT_CALLBACK_ALLOW", " 10.2.0.0/16 , name.internal:8080")
    assert refusal(inner, callback_allow(load_settings({}))) is None


def test_an_entry_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_CALLBACK_ALLOW", "loopback,10.2.0.7/16")
    with pytest.raises(InvalidInput) as refused:
        callback_allow(load_settings({}))
    assert str(refused.value) == (
        "FOLIOT_CALLBACK_ALLOW: '10.2.0.7/16' is no network, address or name"
        " (did you mean 10.2.0.0/16?)"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_who_listens_on_loopback_may_call_it_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    assert local_openings(load_settings({"host": host})) == {"FOLIOT_CALLBACK_ALLOW": "loopback"}
    for said in ("none", "10.2.0.0/16"):
        monkeypatch.setenv("FOLIOT_CALLBACK_ALLOW", said)
        assert local_openings(load_settings({"host": host})) == {}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.2.0.7", "here.example"])  # noqa: S104
def test_who_can_be_reached_by_others_opens_nothing(host: str) -> None:
    assert local_openings(load_settings({"host": host})) == {}
