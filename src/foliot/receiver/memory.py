"""What was seen, in this process's memory: so much of it, for so long, and gone at its end."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

from foliot.receiver.calls import Call, Done, Fresh, InFlight, Stale, Verdict

# Longer than Foliot repeats a message by itself.
KEEP_SECONDS: Final = 2 * 86_400.0
ENTRIES_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class _Seen:
    """Of a key the status, None while in flight; of an execution its highest fence."""

    value: int | None
    at_seconds: float


class MemoryStore:
    """May be used from several threads. Past `entries_max` keys, or as many executions, the oldest
    are forgotten."""

    def __init__(
        self, *, keep_seconds: float = KEEP_SECONDS, entries_max: int = ENTRIES_MAX
    ) -> None:
        self._keep_seconds = keep_seconds
        self._entries_max = entries_max
        self._keys: OrderedDict[str, _Seen] = OrderedDict()
        self._fences: OrderedDict[str, _Seen] = OrderedDict()
        self._lock = Lock()

    def begin(self, call: Call, now_seconds: float) -> Verdict:
        with self._lock:
            highest = self._find(self._fences, call.execution_id, now_seconds)
            if highest is not None and (highest.value or 0) > call.fence:
                return Stale(highest.value or 0)
            self._put(self._fences, call.execution_id, _Seen(call.fence, now_seconds))
            for key in call.keys:
                seen = self._find(self._keys, key, now_seconds)
                if seen is not None:
                    return InFlight() if seen.value is None else Done(seen.value)
            for key in call.keys:
                self._put(self._keys, key, _Seen(None, now_seconds))
            return Fresh()

    def end(self, call: Call, status: int | None, now_seconds: float) -> None:
        with self._lock:
            for key in call.keys:
                if status is None:
                    self._keys.pop(key, None)
                else:
                    self._put(self._keys, key, _Seen(status, now_seconds))

    def _find(
        self, entries: OrderedDict[str, _Seen], name: str, now_seconds: float
    ) -> _Seen | None:
        """What is too old is forgotten, whoever's it is."""
        oldest = now_seconds - self._keep_seconds
        while entries and next(iter(entries.values())).at_seconds < oldest:
            entries.popitem(last=False)
        return entries.get(name)

    def _put(self, entries: OrderedDict[str, _Seen], name: str, seen: _Seen) -> None:
        entries[name] = seen
        entries.move_to_end(name)
        while len(entries) > self._entries_max:
            entries.popitem(last=False)
