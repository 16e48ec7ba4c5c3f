"""What an operator opens: entries, words, ports, and errors that name the entry."""

from ipaddress import IPv4Address, IPv6Address

import pytest

from foliot.core.allow_list import CLOSED, read_allow_list
from foliot.core.errors import InvalidInput
from foliot.core.hosts import Address

INNER = IPv4Address("10.2.0.7")
INNER_6 = IPv6Address("fd12::7")


def opens(entry: str, address: Address, name: str | None = None, port: int = 80) -> bool:
    return read_allow_list(entry.split(","), "X").opens(address, name, port)


@pytest.mark.parametrize(
    ("entry", "open_ports"),
    [
        ("10.2.0.0/16", {80, 8080}),
        ("10.2.0.7", {80, 8080}),
        ("10.2.0.7/32", {80, 8080}),
        ("10.2.0.7:8080", {8080}),
        ("10.2.0.0/16:8080", {8080}),
        (" 10.2.0.7 ", {80, 8080}),
        ("private", {80, 8080}),
        ("PRIVATE", {80, 8080}),
        ("private:80", {80}),
        ("0.0.0.0/0", {80, 8080}),
        ("10.3.0.0/16", set()),
        ("10.2.0.8", set()),
        ("loopback", set()),
        ("::/0", set()),
    ],
)
def test_networks_and_addresses_open_what_they_hold(entry: str, open_ports: set[int]) -> None:
    assert {port for port in (80, 8080) if opens(entry, INNER, port=port)} == open_ports


@pytest.mark.parametrize(
    "entry", ["fd12::7", "[fd12::7]", "[fd12::7]:80", "fd12::/16", "[fd12::/16]:80", "private"]
)
def test_ipv6_may_stand_in_brackets(entry: str) -> None:
    assert opens(entry, INNER_6)
    assert not opens(entry, IPv6Address("fe80::7"))


def test_words_open_both_families() -> None:
    assert opens("loopback", IPv4Address("127.0.0.1"))
    assert opens("loopback", IPv6Address("::1"))
    assert not opens("private", IPv4Address("127.0.0.1"))
    assert not opens("private", IPv4Address("100.64.0.1"))
    assert not opens("private", IPv4Address("169.254.1.1"))


def test_a_name_opens_whatever_it_resolves_to_and_nothing_else() -> None:
    assert opens("Name.Internal", INNER, "name.internal")
    assert opens("name.internal:8080", INNER, "name.internal", 8080)
    assert not opens("name.internal:8080", INNER, "name.internal", 80)
    assert not opens("name.internal", INNER, "other.internal")
    assert not opens("name.internal", INNER, "sub.name.internal")
    assert not opens("name.internal", INNER, None)
    assert opens("bücher.internal", INNER, "xn--bcher-kva.internal")


def test_only_an_address_by_itself_is_named_exactly() -> None:
    address = IPv4Address("169.254.169.254")
    for entry in ("169.254.169.254", "169.254.169.254/32", "169.254.169.254:80"):
        assert read_allow_list([entry], "X").names(address, 80)
    for entry in ("169.254.169.254/31", "0.0.0.0/0", "private", "metadata", "169.254.169.254:81"):
        assert not read_allow_list([entry], "X").names(address, 80)


def test_none_by_itself_opens_nothing() -> None:
    assert read_allow_list(["none"], "X") == read_allow_list([], "X") == CLOSED


def test_two_lists_joined_open_what_either_does() -> None:
    one, other = read_allow_list(["10.2.0.7"], "X"), read_allow_list(["a.internal:80"], "X")
    both = one.joined(other)
    assert both.opens(INNER, None, 1)
    assert both.opens(IPv4Address("10.9.9.9"), "a.internal", 80)
    assert one.joined(one) == one.joined(CLOSED) == one


@pytest.mark.parametrize(
    ("entries", "entry", "hint"),
    [
        ("10.2.0.7/16", "10.2.0.7/16", "did you mean 10.2.0.0/16?"),
        ("loopback,10.2.0.0/33", "10.2.0.0/33", "write 10.2.0.0/16"),
        ("10.2", "10.2", "four decimal numbers"),
        ("0x7f.1", "0x7f.1", "four decimal numbers"),
        ("a b", "a b", "use letters"),
        ("*.internal", "*.internal", "use letters"),
        ("http://a.internal", "http://a.internal", "port"),
        ("a.internal:0", "a.internal:0", "from 1 to 65535"),
        ("a.internal:99999", "a.internal:99999", "from 1 to 65535"),
        ("a.internal:", "a.internal:", "from 1 to 65535"),
        ("[fd12::7]:x", "[fd12::7]:x", "from 1 to 65535"),
        ("[fd12::7", "[fd12::7", ""),
        ("fe80::1%eth0", "fe80::1%eth0", "leave the zone out"),
        ("fd12::7::", "fd12::7::", "write 10.2.0.0/16"),
        ("", "", "write it like"),
        ("none,loopback", "none", "none stands by itself"),
    ],
)
def test_an_entry_that_cannot_be_read_is_named(entries: str, entry: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_allow_list(entries.split(","), "FOLIOT_CALLBACK_ALLOW")
    assert refused.value.field == "FOLIOT_CALLBACK_ALLOW"
    assert refused.value.reason == f"{entry!r} is no network, address or name"
    assert hint in (refused.value.hint or "")
