"""For those who receive callbacks: a door before an application of yours.

    from foliot.receiver.asgi import verify   # or foliot.receiver.wsgi

    app = verify(app, keys=["whsec_…"])

Behind it come only requests that Foliot has signed within the last minutes, none of an attempt
that another has replaced, and each piece of work once. What has been seen is kept in memory unless
you bring a `store` of your own: with several processes it should be a database.
"""

from foliot.receiver.calls import AsyncStore, Call, Done, Fresh, InFlight, Stale, Store, Verdict
from foliot.receiver.memory import MemoryStore

__all__ = [
    "AsyncStore",
    "Call",
    "Done",
    "Fresh",
    "InFlight",
    "MemoryStore",
    "Stale",
    "Store",
    "Verdict",
]
