"""No spelling of a denied address gets through, whoever reads it."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from foliot.core.addresses import DENIED_IPV4, DENIED_IPV6, MAPPED, refusal
from foliot.core.allow_list import CLOSED
from foliot.core.errors import InvalidInput
from foliot.core.hosts import read_host
from foliot.core.urls import literal_refusal, read_url

OFTEN = settings(deadline=None, max_examples=300)
IPV4 = st.integers(0, 2**32 - 1).map(IPv4Address)
IPV6 = st.integers(0, 2**128 - 1).map(IPv6Address)


def within(network: IPv4Network | IPv6Network) -> st.SearchStrategy[int]:
    first, last = int(network.network_address), int(network.broadcast_address)
    return st.sampled_from([first, last]) | st.integers(first, last)


DENIED_4 = st.sampled_from(DENIED_IPV4).flatmap(lambda row: within(row[0])).map(IPv4Address)
DENIED_6 = st.sampled_from(DENIED_IPV6).flatmap(lambda row: within(row[0])).map(IPv6Address)

# Ways to put an IPv4 address into an IPv6 address: the number to add to, and how far to the left.
CARRIERS = {
    "mapped": lambda number: 0xFFFF << 32 | number,
    "compatible": lambda number: number,
    "translated": lambda number: 0xFFFF << 48 | number,
    "NAT64": lambda number: 0x0064_FF9B << 96 | number,
    "local NAT64": lambda number: 0x0064_FF9B_0001 << 80 | number,
    "6to4": lambda number: 0x2002 << 112 | number << 80 | 1,
    "Teredo's server": lambda number: 0x2001 << 112 | number << 64 | 0x0808_0808,
    "Teredo's client": lambda number: 0x2001 << 112 | 0x0808_0808 << 64 | number ^ 0xFFFF_FFFF,
    "ISATAP": lambda number: 0x2A00_1450 << 96 | 0x5EFE << 32 | number,
    "global ISATAP": lambda number: 0x2A00_1450 << 96 | 0x0200_5EFE << 32 | number,
}

OTHER_DIGITS = ["０１２３４５６７８９", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗", "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"]


def dotted(write: Callable[[int], str], parts: int = 4) -> Callable[[IPv4Address], str]:
    """The last part holds what is left, as the oldest parsers have it."""

    def spell(address: IPv4Address) -> str:
        number = int(address)
        left = 8 * (5 - parts)
        heads = [number >> shift & 0xFF for shift in (24, 16, 8)][: parts - 1]
        return ".".join(write(part) for part in [*heads, number & (1 << left) - 1])

    return spell


def in_digits(digits: str) -> Callable[[IPv4Address], str]:
    table = str.maketrans("0123456789", digits)
    return lambda address: str(address).translate(table)


ODD: list[Callable[[IPv4Address], str]] = [
    *(dotted(write, parts) for write in ("{:#x}".format, "0{:o}".format, "0X{:X}".format)
      for parts in (1, 2, 3, 4)),
    *(dotted("{:d}".format, parts) for parts in (1, 2, 3)),
    dotted("{:03d}".format),
    dotted("0{:d}".format),
    lambda address: f"{address}.",
    lambda address: f"0{address}",
    lambda address: f"{address}".replace(".", "。"),
    lambda address: f"{address}".replace(".", "%2e"),
    lambda address: f"{address}".replace("1", "%31").replace("2", "%32").replace("0", "%30"),
    lambda address: f"[{address}]",
    lambda address: f"1.{address}",
    *(in_digits(digits) for digits in OTHER_DIGITS),
]  # fmt: skip


@OFTEN
@given(DENIED_4 | DENIED_6)
def test_every_address_of_a_denied_network_is_refused(address: IPv4Address | IPv6Address) -> None:
    assert refusal(address)


@OFTEN
@given(DENIED_4, st.sampled_from(sorted(CARRIERS)))
@example(IPv4Address("127.0.0.1"), "compatible")
def test_a_denied_address_is_refused_whatever_carries_it(address: IPv4Address, how: str) -> None:
    carrier = IPv6Address(CARRIERS[how](int(address)))
    assert refusal(carrier)
    assert literal_refusal(read_url(f"http://[{carrier}]/", "url"), CLOSED)
    assert literal_refusal(read_url(f"http://[{carrier.exploded}]/", "url"), CLOSED)


@OFTEN
@given(IPV4, st.sampled_from(["mapped", "NAT64"]))
def test_another_spelling_is_as_open_as_the_address_it_spells(
    address: IPv4Address, how: str
) -> None:
    assert (refusal(IPv6Address(CARRIERS[how](int(address)))) is None) == (refusal(address) is None)


@OFTEN
@given(IPV4 | DENIED_4, st.sampled_from(ODD))
def test_an_odd_spelling_is_refused(
    address: IPv4Address, spell: Callable[[IPv4Address], str]
) -> None:
    host = spell(address)
    assume(host != str(address))
    try:
        read = read_url(f"http://{host}/", "url")
    except InvalidInput:
        return
    raise AssertionError(f"{host} was read as {read.host!r}")


@settings(deadline=None, max_examples=2000)
@given(st.text("0123456789abcdefxX.", min_size=1, max_size=24))
@example("0x7f.1")
@example("127.0.0.1")
@example("0x")
def test_what_the_system_reads_as_an_address_is_no_name(text: str) -> None:
    try:
        meant = IPv4Address(socket.inet_aton(text))
    except OSError:
        return
    try:
        assert read_host(text, "url") == meant
    except InvalidInput:
        return


@OFTEN
@given(st.text(max_size=30) | st.text("0123456789.。．｡[]:%@/\\-_", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        url = read_url(f"https://{text}", "url")
    except InvalidInput:
        return
    assert url.text.isascii()
    assert read_url(url.text, "url") == url


@OFTEN
@given(IPV4 | DENIED_4 | IPV6 | DENIED_6)
def test_what_the_standard_library_calls_inner_is_refused(
    address: IPv4Address | IPv6Address,
) -> None:
    if not address.is_global and address not in MAPPED:
        assert refusal(address)
