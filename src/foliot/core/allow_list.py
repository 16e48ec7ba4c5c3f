"""Which inner addresses an operator opens to callbacks.

An entry is a network, an address or a name, each with a port if only that one is meant, or one of
the words `loopback` and `private`. A name opens what it resolves to. Endpoints that hand out a
machine's credentials are opened by their very address only, by no network, name or word.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from foliot.core.errors import InvalidInput
from foliot.core.hosts import Address, read_host

Network = IPv4Network | IPv6Network

PORT_MAX: Final = 65_535
WORDS: Final = {
    "loopback": (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128")),
    "private": (
        IPv4Network("10.0.0.0/8"),
        IPv4Network("172.16.0.0/12"),
        IPv4Network("192.168.0.0/16"),
        IPv6Network("fc00::/7"),
    ),
}
# What an operator says who opens nothing, also where something is open unless told otherwise.
NONE: Final = "none"
_EXAMPLES: Final = "write 10.2.0.0/16, 10.2.0.7:8080, [fd12::7]:8080, name.internal, loopback"
_PORT: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class Opening:
    """A network, or a name; on every port, or on one."""

    network: Network | None = None
    name: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class AllowList:
    openings: tuple[Opening, ...] = ()

    def opens(self, address: Address, name: str | None, port: int | None) -> bool:
        """For a call of `port` at `address`, found under `name` if there was one."""
        return any(
            one.name == name if one.network is None else address in one.network
            for one in self._at(port)
        )

    def names(self, address: Address, port: int | None) -> bool:
        """This address and no other."""
        return any(
            one.network is not None and one.network.num_addresses == 1 and address in one.network
            for one in self._at(port)
        )

    def joined(self, other: "AllowList") -> "AllowList":
        return AllowList(tuple(dict.fromkeys((*self.openings, *other.openings))))

    def _at(self, port: int | None) -> Iterable[Opening]:
        return (one for one in self.openings if one.port is None or one.port == port)


CLOSED: Final = AllowList()


def read_allow_list(entries: Iterable[str], field: str) -> AllowList:
    """Raises InvalidInput that names the entry which is none."""
    written = [entry.strip() for entry in entries]
    if written == [NONE]:
        return CLOSED
    found: dict[Opening, None] = {}
    for entry in written:
        found.update(dict.fromkeys(_openings(entry, field)))
    return AllowList(tuple(found))


def _openings(entry: str, field: str) -> Iterable[Opening]:
    where, port = _without_port(entry, field)
    word = where.lower()
    if word in WORDS:
        return [Opening(network=network, port=port) for network in WORDS[word]]
    if _is_numeric(where):
        return [Opening(network=_network(entry, where.strip("[]"), field), port=port)]
    try:
        host = read_host(where, field)
    except InvalidInput as refused:
        raise _unreadable(entry, field, refused.hint or _EXAMPLES) from None
    if word == NONE:
        raise _unreadable(entry, field, "none stands by itself")
    if not isinstance(host, str):
        return [Opening(network=ip_network(host), port=port)]
    return [Opening(name=host, port=port)]


def _without_port(entry: str, field: str) -> tuple[str, int | None]:
    """`[fd12::7]:80` has a port, `fd12::7` has none."""
    if entry.startswith("[") or entry.count(":") == 1:
        where, colon, port = entry.rpartition(":")
        if colon and not (entry.startswith("[") and entry.endswith("]")):
            if not _PORT.fullmatch(port) or not 1 <= int(port) <= PORT_MAX:
                raise _unreadable(entry, field, f"a port is a number from 1 to {PORT_MAX}")
            return where, int(port)
    return entry, None


def _is_numeric(where: str) -> bool:
    return "/" in where or ":" in where


def _network(entry: str, where: str, field: str) -> Network:
    if "%" in where:
        raise _unreadable(entry, field, "leave the zone out")
    try:
        loose = ip_network(where, strict=False)
    except ValueError:
        raise _unreadable(entry, field, _EXAMPLES) from None
    try:
        return ip_network(where)
    except ValueError:
        raise _unreadable(entry, field, f"did you mean {loose}?") from None


def _unreadable(entry: str, field: str, hint: str) -> InvalidInput:
    reason = f"{entry[:80]!r} is no network, address or name"
    return InvalidInput(reason, field=field, hint=hint)
