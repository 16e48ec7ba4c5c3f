"""A run in words and numbers, for people: what was done to the system, what it did, what holds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from chaos.checker.claims import stale_ends
from chaos.checker.effects import duplicates, refused_by_fence
from chaos.checker.history import HARMLESS, History
from chaos.checker.owed import ledgers, tally
from chaos.checker.reports import stale_reports
from chaos.checker.verdict import Verdict
from chaos.facts import Facts
from chaos.measures import (
    Recovery,
    failovers,
    lateness,
    orphan_recoveries,
    percentile,
    starts,
    takings,
    waits,
)


def render(facts: Facts, verdicts: Sequence[Verdict]) -> str:
    history = History(facts)
    parts = [
        _head(facts, verdicts),
        _faults(facts),
        _instants(history),
        _executions(history),
        _times(history),
        show_verdicts(verdicts),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def show_verdicts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield from _table(verdicts)
    yield from _witnesses(verdicts)


def _head(facts: Facts, verdicts: Sequence[Verdict]) -> Iterator[str]:
    seconds = (facts.read_at - facts.began_at).total_seconds()
    faulty = (facts.calm_at - facts.began_at).total_seconds()
    bad = [one.name for one in verdicts if not one.ok]
    yield f"chaos: seed {facts.seed}, {seconds:.0f} s, of which {faulty:.0f} s with faults"
    yield f"FAILED: {', '.join(bad)}" if bad else f"all {len(verdicts)} invariants hold"
    yield ""


def _faults(facts: Facts) -> Iterator[str]:
    kinds = Counter(one.kind for one in facts.faults if one.kind not in HARMLESS)
    kills = sum(count for kind, count in kinds.items() if kind.startswith("kill"))
    points = sum(one.point is not None for one in facts.faults)
    yield f"faults: {kinds.total()}, {kills} of them kills, {points} at a named point"
    yield from _counted(kinds)
    yield ""


def _instants(history: History) -> Iterator[str]:
    total = tally(ledgers(history))
    skipped = total.skipped.total()
    yield f"instants: {total.expected} expected, {total.fired} fired, {skipped} skipped, "
    yield f"  {total.lost} lost, {total.doubled} doubled, {total.open} not due for long enough"
    yield from _counted(total.skipped)
    if total.expected and not total.lost and not total.doubled:
        bound = 3 / total.expected
        yield f"  none lost or doubled in {total.expected}: at most {bound:.1e} of them (95 %)"
    yield ""


def _executions(history: History) -> Iterator[str]:
    refused, accepted = stale_ends(history)
    statuses = Counter(row["status"] for row in history.finals.values())
    yield f"executions: {len(history.known)}, {len(history.live)} of them not over"
    yield from _counted(statuses)
    yield f"stale ends: {refused} refused, {accepted} accepted"
    refused, kept = stale_reports(history)
    yield f"stale reports: {refused} refused, {kept} kept"
    yield f"effects: {len(history.facts.effects)}, a sink that keeps the highest fence refuses "
    yield f"  {refused_by_fence(history)} of them"
    again = duplicates(history)
    yield f"came to their end more than once: {again.total()}, by what became of the earlier hold"
    yield from _counted(again)
    yield ""


def _times(history: History) -> Iterator[str]:
    yield f"{'seconds':<38} {'n':>6} {'p50':>9} {'p99':>9} {'max':>9}"
    yield _row("lateness of instants", lateness(history))
    yield _row("wait for a claim", waits(history))
    yield _row("claim to start", starts(history))
    yield from _recovery("failover", failovers(history), "schedulers")
    yield from _recovery("orphans taken", takings(history), "workers")
    yield from _recovery("orphans claimed", orphan_recoveries(history), "workers")
    yield ""


def _recovery(name: str, found: Recovery, whose: str) -> Iterator[str]:
    yield _row(f"{name}, {found.kills} {whose} killed", found.plain)
    if found.kills_in_outage:
        yield _row(f"  {found.kills_in_outage} beside a database outage", found.in_outage)


def _row(name: str, values: Sequence[float]) -> str:
    if not values:
        return f"{name:<38} {0:>6} {'-':>9} {'-':>9} {'-':>9}"
    middle, high, most = percentile(values, 0.5), percentile(values, 0.99), max(values)
    return f"{name:<38} {len(values):>6} {middle:>9.3f} {high:>9.3f} {most:>9.3f}"


def _table(verdicts: Iterable[Verdict]) -> Iterator[str]:
    yield "invariant                 checked    wanted  violations"
    for one in verdicts:
        mark = "" if one.ok else "  <-- " + ("violated" if one.found else "checked too seldom")
        yield f"{one.name:<22} {one.checked:>10} {one.wanted:>9} {one.found:>11}{mark}"
    yield ""


def _witnesses(verdicts: Iterable[Verdict]) -> Iterator[str]:
    for one in verdicts:
        if one.violations:
            first, *rest = one.violations[0].lines
            yield f"{one.name}: {first}"
            yield from (f"    {line}" for line in rest)
            yield ""


def _counted(counts: Counter[str]) -> Iterator[str]:
    for name, count in sorted(counts.items()):
        yield f"  {count:>7} {name}"
