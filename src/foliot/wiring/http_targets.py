"""From the settings to what makes callbacks."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from foliot.core.allow_list import AllowList
from foliot.core.ids import TenantId
from foliot.runtime.chance import random_fraction
from foliot.runtime.clock import Clock
from foliot.runtime.envelope import Keyring
from foliot.settings import Settings
from foliot.store.database import Database
from foliot.store.signing_keys import OpenedSigningKeys, open_signing_keys
from foliot.store.tenants import read_callback_allow
from foliot.wiring.callbacks import callback_allow
from foliot.worker.deliver import PER_HOST, Deliverer
from foliot.worker.http.destinations import Destinations
from foliot.worker.http.guards import Guards
from foliot.worker.http.runner import HttpRunner
from foliot.worker.http.signers import Signers
from foliot.worker.messages import Messenger
from foliot.worker.secrets import SecretReader

PER_HOST_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Outside:
    """What calls to the outside need; without a `keyring` they are not signed."""

    settings: Settings
    database: Database
    clock: Clock
    keyring: Keyring | None

    def caller(self, per_host: int) -> HttpRunner:
        async def read_openings(tenant_id: UUID) -> AllowList:
            return await read_callback_allow(self.database, TenantId(tenant_id))

        async def read_keys(tenant_id: UUID) -> OpenedSigningKeys:
            return await open_signing_keys(self.database, self.keyring, TenantId(tenant_id))

        guards = Guards(callback_allow(self.settings), read_openings, self.clock)
        destinations = Destinations(per_host, self.clock, random_fraction)
        return HttpRunner(guards, destinations, Signers(read_keys, self.clock).of)


def http_runner(outside: Outside) -> HttpRunner:
    return outside.caller(_per_host(outside.settings))


def deliverer(outside: Outside) -> Deliverer:
    """The callers of targets and of completion callbacks do not wait for one another."""
    reader = SecretReader(outside.database, outside.keyring, outside.clock)
    messenger = Messenger(outside.caller(PER_HOST), reader)
    return Deliverer(outside.database, messenger, outside.clock)


def _per_host(settings: Settings) -> int:
    """Unless told otherwise, one host gets half of the slots: the other half is for others."""
    if settings.callbacks_per_host is not None:
        return settings.callbacks_per_host
    return max(1, min(PER_HOST_MAX, settings.concurrency // 2))
