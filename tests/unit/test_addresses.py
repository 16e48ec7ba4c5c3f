"""The deny table: what is refused, in which words, and what an operator can open."""

from ipaddress import IPv4Address, ip_address

import pytest

from foliot.core.addresses import METADATA, carried, refusal
from foliot.core.allow_list import read_allow_list


def why(address: str, allow: str = "", name: str | None = None, port: int = 443) -> str | None:
    entries = [entry for entry in allow.split(",") if entry]
    return refusal(ip_address(address), read_allow_list(entries, "X"), name=name, port=port)


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "203.0.114.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2001:200::1",
        "2a00:1450:4001:80b::200e",
        "3ffe::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ],
)
def test_public_addresses_are_open(address: str) -> None:
    assert why(address) is None


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("0.1.2.3", "0.1.2.3 is an unspecified address"),
        ("127.8.8.8", "127.8.8.8 is a loopback address"),
        ("::1", "::1 is the loopback address"),
        ("::", ":: is the unspecified address"),
        ("10.0.0.1", "10.0.0.1 is a private address"),
        ("fd00::1", "fd00::1 is a private address"),
        ("100.64.0.1", "100.64.0.1 is a carrier's inner address"),
        ("169.254.1.1", "169.254.1.1 is a link-local address"),
        ("169.254.169.254", "169.254.169.254 is a cloud's metadata endpoint"),
        ("168.63.129.16", "168.63.129.16 is a cloud's metadata endpoint"),
        ("fd00:ec2::254", "fd00:ec2::254 is a cloud's metadata endpoint"),
        ("255.255.255.255", "255.255.255.255 is the broadcast address"),
        ("224.0.0.1", "224.0.0.1 is a multicast address"),
        ("ff02::1", "ff02::1 is a multicast address"),
        ("240.0.0.1", "240.0.0.1 is a reserved address"),
        ("2001:db8::1", "2001:db8::1 is a documentation address"),
        ("fec0::1", "fec0::1 is a site-local address"),
        ("4000::1", "4000::1 is a reserved address"),
        ("::ffff:10.0.0.1", "::ffff:a00:1 leads to 10.0.0.1, which is a private address"),
        (
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::a9fe:a9fe leads to 169.254.169.254, which is a cloud's metadata endpoint",
        ),
        ("2002:7f00:1::", "2002:7f00:1:: is a 6to4 address"),
        ("2001::1", "2001::1 is a Teredo address"),
        (
            "2a00:1450::5efe:7f00:1",
            "2a00:1450::5efe:7f00:1 leads to 127.0.0.1, which is a loopback address",
        ),
    ],
)
def test_a_refusal_says_why(address: str, words: str) -> None:
    assert why(address) == words


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("8.8.8.8", []),
        ("2606:4700::1", []),
        ("::1", []),
        ("::", []),
        ("::10.0.0.1", ["10.0.0.1"]),
        ("::ffff:10.0.0.1", ["10.0.0.1"]),
        ("::ffff:0:10.0.0.1", ["10.0.0.1"]),
        ("64:ff9b::10.0.0.1", ["10.0.0.1"]),
        ("64:ff9b:1::10.0.0.1", ["10.0.0.1"]),
        ("2002:a00:1::", ["10.0.0.1"]),
        ("2001:0:a00:1:0:0:f5ff:fffd", ["10.0.0.1", "10.0.0.2"]),
        ("2a00::5efe:10.0.0.1", ["10.0.0.1"]),
        ("2a00::200:5efe:10.0.0.1", ["10.0.0.1"]),
    ],
)
def test_what_an_address_carries_is_seen(address: str, inside: list[str]) -> None:
    assert list(carried(ip_address(address))) == [IPv4Address(one) for one in inside]


@pytest.mark.parametrize(
    ("address", "allow"),
    [
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("10.2.3.4", "private"),
        ("fd12::1", "private"),
        ("10.2.3.4", "10.2.0.0/16"),
        ("10.2.3.4", "10.2.3.4:443"),
        ("::ffff:10.2.3.4", "10.2.0.0/16"),
        ("64:ff9b::10.2.3.4", "10.2.0.0/16"),
        ("100.64.0.1", "100.64.0.0/10"),
        ("64:ff9b:1::8.8.8.8", "64:ff9b:1::/48"),
        ("64:ff9b:1::10.2.3.4", "64:ff9b:1::/48,10.2.0.0/16"),
        ("169.254.169.254", "169.254.169.254"),
        ("fd00:ec2::254", "[fd00:ec2::254]:443"),
        ("169.254.7.7", "169.254.0.0/16"),
    ],
)
def test_an_operator_opens_what_is_named(address: str, allow: str) -> None:
    assert why(address, allow) is None
    assert why(address) is not None


@pytest.mark.parametrize(
    ("address", "allow"),
    [
        ("10.2.3.4", "10.2.3.4:80"),
        ("10.2.3.4", "loopback"),
        ("127.0.0.1", "private"),
        ("::ffff:10.2.3.4", "::ffff:0:0/96"),
        ("64:ff9b:1::10.2.3.4", "64:ff9b:1::/48"),
        ("2002:a00:1::", "private"),
    ],
)
def test_what_is_not_named_stays_shut(address: str, allow: str) -> None:
    assert why(address, allow) is not None


def test_a_name_opens_its_addresses() -> None:
    assert why("10.2.3.4", "name.internal", name="name.internal") is None
    assert why("10.2.3.4", "name.internal", name="other.internal") is not None


@pytest.mark.parametrize("address", sorted(map(str, METADATA)))
def test_no_network_word_or_name_opens_a_metadata_endpoint(address: str) -> None:
    everything = "loopback,private,0.0.0.0/0,::/0,169.254.0.0/16,fd00::/8,name.internal"
    assert why(address, everything, name="name.internal") is not None
    assert why(address, f"{everything},{address}", name="name.internal") is None
