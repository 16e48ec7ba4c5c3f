"""What a freshly forked process becomes."""

from foliot.worker.app import Prepared
from foliot.worker.hosts.loop_host import run_loop_host
from foliot.worker.hosts.nursery import Cradle
from foliot.worker.hosts.solo_host import run_solo_host


def grow(cradle: Cradle, handlers: dict[str, Prepared]) -> None:
    """Returns when the worker has no more to say."""
    if cradle.is_async:
        run_loop_host(cradle, handlers)
    else:
        run_solo_host(cradle, handlers)
