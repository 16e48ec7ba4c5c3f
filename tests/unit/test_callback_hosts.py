"""Hosts: one plain spelling for each, and no way to write an address that looks like a name."""

from ipaddress import IPv4Address, IPv6Address

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.hosts import Host, is_this_machine, read_host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("reports", "reports"),
        ("my_service.internal", "my_service.internal"),
        ("1password.example", "1password.example"),
        ("4.example", "4.example"),
        ("0x7f.example", "0x7f.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("例え.jp", "xn--r8jz45g.jp"),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
        ("93.184.216.34", IPv4Address("93.184.216.34")),
        ("0.0.0.0", IPv4Address("0.0.0.0")),  # noqa: S104 - read, not listened on
        ("[2606:2800:220:1:248:1893:25c8:1946]", IPv6Address("2606:2800:220:1:248:1893:25c8:1946")),
        ("[0:0::0:1]", IPv6Address("::1")),
        ("[::FFFF:10.0.0.1]", IPv6Address("::ffff:10.0.0.1")),
    ],
)
def test_a_host_has_one_reading(text: str, host: Host) -> None:
    assert read_host(text, "url") == host


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no host"),
        ("127.1", "'127.1' is not an IPv4 address in its plain form"),
        ("0x7f.1", "is not an IPv4 address in its plain form"),
        ("2130706433", "is not an IPv4 address in its plain form"),
        ("127.0.0.01", "is not an IPv4 address in its plain form"),
        ("1.2.3.4.5", "is not an IPv4 address in its plain form"),
        ("1.2.3.999", "is not an IPv4 address in its plain form"),
        ("example.12", "is not an IPv4 address in its plain form"),
        ("127.0.0.1.", "has a host that is no name"),
        ("example.com.", "has a host that is no name"),
        ("a..b", "has a host that is no name"),
        ("-a.example", "has a host that is no name"),
        ("a" * 64 + ".example", "has a host that is no name"),
        (".".join(["a" * 60] * 5), "more than 253 characters"),
        (".".join(["ü" * 49] * 5), "more than 253 characters"),
        ("a%41.example", "has a % in its host"),
        ("[fe80::1%eth0]", "has a % in its host"),
        ("::1", "is not an IPv6 address in brackets"),
        ("[127.0.0.1]", "is not an IPv6 address in brackets"),
        ("[v1.x]", "is not an IPv6 address in brackets"),
        ("１２７.0.0.1", "characters that stand for others"),
        ("straße.example", "characters that stand for others"),
        ("a\u200db.example", "characters that stand for others"),
        ("\u212aey.example", "characters that stand for others"),
        ("127。0。0。1", "characters that stand for others"),
    ],
)
def test_what_is_no_host_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=r"^target\.url: ") as refused:
        read_host(text, "target.url")
    assert words in refused.value.reason
    assert refused.value.hint


def test_localhost_and_all_below_it_mean_this_machine() -> None:
    assert all(is_this_machine(name) for name in ("localhost", "a.localhost", "a.b.localhost"))
    others: list[Host] = ["notlocalhost", "localhost.example", "local", IPv4Address("127.0.0.1")]
    assert not any(is_this_machine(host) for host in others)
