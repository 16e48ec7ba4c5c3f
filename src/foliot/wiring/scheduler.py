"""The scheduler role: waits for a database that is there and migrated, then works until told to
stop."""

import asyncio
import logging
import socket
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

import uvloop

from foliot import __version__
from foliot.core.ids import SchedulerId
from foliot.runtime.chance import fresh_id
from foliot.runtime.clock import Clock, SystemClock
from foliot.runtime.health import Starting
from foliot.runtime.service import beside, collect_rarely, run, stop_signals, until
from foliot.scheduler.service import Connections, SchedulerService
from foliot.settings import Settings
from foliot.store.database import Database
from foliot.store.opening import open_all
from foliot.store.shards import Scheduler
from foliot.wiring.connections import connection_options, required_url
from foliot.wiring.health import serve_health
from foliot.wiring.hints import hearing_transport
from foliot.wiring.migrated import wait_until_migrated

log = logging.getLogger(__name__)

# Two batches and three looks; a lease and the time; a few of the others at once.
FIRING_CONNECTIONS: Final = 5
LEASE_CONNECTIONS: Final = 2
TRADE_CONNECTIONS: Final = 4


def serve_scheduler(settings: Settings) -> None:
    """Until SIGTERM or SIGINT; what it holds is given back first."""
    collect_rarely()
    run(_serve(settings, required_url(settings)), uvloop.new_event_loop)


async def _serve(settings: Settings, url: str) -> None:
    stop = asyncio.Event()
    with stop_signals(first=stop.set, again=stop.set):
        await until(stop, _work(settings, url, SystemClock()))
    log.info("stopped")


async def _work(settings: Settings, url: str, clock: Clock) -> None:
    readiness = Starting("the database has not been reached yet, or is not migrated")
    options = connection_options(settings, "foliot scheduler")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serve_health(settings, readiness))
        sizes = (LEASE_CONNECTIONS, FIRING_CONNECTIONS, TRADE_CONNECTIONS)
        leases, firing, trades = ways = [
            Database(url, replace(options, max_connections=most, warn=not number))
            for number, most in enumerate(sizes)
        ]
        for way in ways:
            stack.push_async_callback(way.close)
        await open_all(ways, url, options, clock)
        await wait_until_migrated(leases, clock)
        node = Scheduler(SchedulerId(fresh_id()), socket.gethostname(), __version__)
        transport = hearing_transport(settings, url, trades, clock, "foliot scheduler hints")
        await stack.enter_async_context(beside(transport.run(), name="hints"))
        service = SchedulerService(Connections(leases, firing, trades), clock, node, transport)
        readiness.then = service.readiness
        await service.run()
