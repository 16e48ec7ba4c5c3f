"""Several lines as one, where what coincides counts once."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from foliot.core.schedule.timeline import TICK, Occurrence, Skip, Timeline


@dataclass(frozen=True, slots=True)
class Span:
    """A line whose occurrences all lie in low <= instant < high."""

    low: datetime
    high: datetime
    line: Timeline


@dataclass(frozen=True, slots=True)
class Union(Timeline):
    """All occurrences of the spans. Of those that coincide one that runs stands, else the first.

    Where spans do not overlap a count is the sum of theirs; where they do, it lists the instants.
    """

    spans: tuple[Span, ...]

    def next(self, after: datetime) -> Occurrence | None:
        found = (span.line.next(after) for span in self.spans if span.high > after)
        return min((one for one in found if one is not None), key=_soonest, default=None)

    def previous(self, before: datetime) -> Occurrence | None:
        found = (span.line.previous(before) for span in self.spans if span.low < before)
        return max((one for one in found if one is not None), key=_latest, default=None)

    def count(self, after: datetime, until: datetime) -> int:
        return sum(_count(spans, after, until) for spans in self._clusters())

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        ends = {skip.to: skip for span in self.spans for skip in span.line.held(after, until)}
        for instant in sorted(ends):
            stands = self.next(instant - TICK)
            if stands is not None and stands.skip_reason is not None:
                yield ends[instant]

    def _clusters(self) -> Iterator[list[Span]]:
        """The spans, those that overlap together."""
        cluster: list[Span] = []
        for span in sorted(self.spans, key=_low):
            if cluster and all(each.high <= span.low for each in cluster):
                yield cluster
                cluster = []
            cluster.append(span)
        if cluster:
            yield cluster


def _low(span: Span) -> datetime:
    return span.low


def _soonest(found: Occurrence) -> tuple[datetime, bool]:
    return found.instant, found.skip_reason is not None


def _latest(found: Occurrence) -> tuple[datetime, bool]:
    return found.instant, found.skip_reason is None


def _count(spans: list[Span], after: datetime, until: datetime) -> int:
    if len(spans) == 1:
        return spans[0].line.count(after, until)
    instants: set[datetime] = set()
    for span in spans:
        found = span.line.next(after)
        while found is not None and found.instant <= until:
            instants.add(found.instant)
            found = span.line.next(found.instant)
    return len(instants)
