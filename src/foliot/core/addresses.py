"""Which addresses a callback must not reach, each with the reason in words.

The table is our own: what the standard library calls global changed between releases and leaves
out multicast, translated and metadata addresses. An IPv6 address that carries an IPv4 address
leads there, so both are judged. In IPv6 only global unicast is open: what nobody has assigned yet
is refused, not waved through.
"""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from foliot.core.allow_list import CLOSED, AllowList
from foliot.core.hosts import Address

LOOPBACK: Final = (IPv4Address("127.0.0.1"), IPv6Address("::1"))

# Where clouds hand out a machine's credentials and secrets. Some lie in ranges that are otherwise
# open or that operators like to open.
METADATA: Final[frozenset[Address]] = frozenset(
    {
        IPv4Address("169.254.169.254"),  # most clouds
        IPv4Address("169.254.169.253"),  # Amazon, names
        IPv4Address("169.254.170.2"),  # Amazon, containers
        IPv4Address("169.254.170.23"),  # Amazon, pods
        IPv4Address("169.254.0.23"),  # Tencent
        IPv4Address("169.254.42.42"),  # Scaleway
        IPv4Address("100.100.100.200"),  # Alibaba
        IPv4Address("192.0.0.192"),  # Oracle
        IPv4Address("168.63.129.16"),  # Azure, in a public range
        IPv6Address("fd00:ec2::254"),  # Amazon
        IPv6Address("fd00:ec2::253"),  # Amazon, names
        IPv6Address("fd00:ec2::23"),  # Amazon, pods
        IPv6Address("fd20:ce::254"),  # Google
        IPv6Address("fd00:42::42"),  # Scaleway
        IPv6Address("fd00:c1::a9fe:a9fe"),  # Oracle
        IPv6Address("fe80::a9fe:a9fe"),  # OpenStack
    }
)
_METADATA_WORDS: Final = "a cloud's metadata endpoint"

DENIED_IPV4: Final = tuple(
    (IPv4Network(network), words)
    for network, words in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a carrier's inner address"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a protocol's own address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a benchmarking address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
MAPPED: Final = IPv6Network("::ffff:0:0/96")
NAT64: Final = IPv6Network("64:ff9b::/96")
NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")
TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")
COMPATIBLE: Final = IPv6Network("::/96")
SIX_TO_FOUR: Final = IPv6Network("2002::/16")
TEREDO: Final = IPv6Network("2001::/32")
GLOBAL: Final = IPv6Network("2000::/3")
# These carry one in their last 32 bits.
_AT_THE_END: Final = (MAPPED, NAT64, NAT64_LOCAL, TRANSLATED, COMPATIBLE)
# Other spellings of an IPv4 address: open as far as that one is.
_SPELLINGS: Final = (MAPPED, NAT64)

DENIED_IPV6: Final = tuple(
    (IPv6Network(network), words)
    for network, words in (
        ("::1/128", "the loopback address"),
        ("::/128", "the unspecified address"),
        (str(COMPATIBLE), "an IPv4-compatible address"),
        (str(TRANSLATED), "an IPv4-translated address"),
        (str(NAT64_LOCAL), "an address of a local translator"),
        ("100::/63", "a discard address"),
        (str(TEREDO), "a Teredo address"),
        ("2001::/23", "a protocol's own address"),
        ("2001:db8::/32", "a documentation address"),
        (str(SIX_TO_FOUR), "a 6to4 address"),
        ("3fff::/20", "a documentation address"),
        ("5f00::/16", "a segment routing address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("ff00::/8", "a multicast address"),
    )
)
# The marks in the middle of an address that ISATAP makes of an IPv4 address.
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})
_LOW_32: Final = 0xFFFF_FFFF
MEMO_SIZE: Final = 4096


def refusal(
    address: Address,
    allow: AllowList = CLOSED,
    *,
    name: str | None = None,
    port: int | None = None,
) -> str | None:
    """Why a callback may not go to `port` at `address`, found under `name`; None if it may."""
    for judged, why in _charges(address):
        if judged in METADATA:
            opened = allow.names(judged, port)
        else:
            opened = allow.opens(judged, name, port)
        if not opened:
            way = f"{address} leads to " if judged != address else ""
            return f"{way}{judged}{', which is' if way else ' is'} {why}"
    return None


def carried(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that packets to `address` may end up at."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if number <= 1:  # ::1 and :: look as if they carried one
        return
    if number >> 32 & _LOW_32 in _ISATAP or any(address in one for one in _AT_THE_END):
        yield IPv4Address(number & _LOW_32)
    if address in SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & _LOW_32)
    if address in TEREDO:
        yield IPv4Address(number >> 64 & _LOW_32)
        yield IPv4Address(~number & _LOW_32)


@lru_cache(maxsize=MEMO_SIZE)
def _charges(address: Address) -> tuple[tuple[Address, str], ...]:
    """The address itself and what it carries, as far as they are denied."""
    found = ((one, _denied(one)) for one in (address, *carried(address)))
    return tuple((one, why) for one, why in found if why is not None)


def _denied(address: Address) -> str | None:
    if address in METADATA:
        return _METADATA_WORDS
    if isinstance(address, IPv4Address):
        return next((words for network, words in DENIED_IPV4 if address in network), None)
    for network, words in DENIED_IPV6:
        if address in network:
            return words
    if address in GLOBAL or any(address in spelling for spelling in _SPELLINGS):
        return None
    return "a reserved address"
