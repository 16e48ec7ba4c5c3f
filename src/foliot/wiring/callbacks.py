"""From the settings to where callbacks may go."""

from ipaddress import ip_address
from typing import Final

from foliot.core.allow_list import AllowList, read_allow_list
from foliot.settings import Settings, variable

CALLBACK_ALLOW: Final = variable("callback_allow")


def callback_allow(settings: Settings) -> AllowList:
    return read_allow_list(settings.callback_allow, CALLBACK_ALLOW)


def local_openings(settings: Settings) -> dict[str, str]:
    """What roles are told that run for one person: who listens on loopback may call it too."""
    if "callback_allow" in settings.model_fields_set or not _is_loopback(settings.host):
        return {}
    return {CALLBACK_ALLOW: "loopback"}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
