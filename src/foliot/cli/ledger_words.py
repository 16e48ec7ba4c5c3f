"""What the check of the ledger has found, for people and for programs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from foliot.api.ledger_view import report_view
from foliot.core.ids import EPOCH
from foliot.core.schedule.ledger import Problem, ProblemKind
from foliot.wiring.ledger import Verified

# What to do about it, by what was found.
ADVICE = {
    ProblemKind.MISSING: "an instant was lost, or its rows removed: trigger the job if it matters",
    ProblemKind.DOUBLED: "an instant may have run twice: see what the job did at that time",
    ProblemKind.UNEXPECTED: "rows were changed by hand, or the time zone data changed since",
    ProblemKind.MISCOUNTED: "rows were changed by hand, or the time zone data changed since",
    ProblemKind.OVERDUE: "look at the schedulers first: `foliot server --role scheduler` must run",
    ProblemKind.UNREADABLE: "a newer Foliot may have written it: use that one",
}


def as_lines(verified: Verified) -> Iterator[str]:
    report = verified.report
    if report.holds:
        yield "The ledger holds: every instant has exactly one outcome."
    else:
        problems, jobs = report.found.total(), report.bad_jobs
        yield f"The ledger does NOT hold: {_many(problems, 'problem')} in {_many(jobs, 'job')}."
    yield ""
    yield from _counts(verified)
    for ledger, named in groupby(report.named, key=lambda each: each[0]):
        yield ""
        yield f"job {ledger.name} ({ledger.job_id})"
        for _, problem in named:
            yield from _problem(problem)
    if report.truncated:
        yield ""
        yield f"and {report.found.total() - len(report.named)} more problems that are not shown"
    if not report.holds:
        yield ""
        for kind in sorted(report.found):
            yield f"{kind} ({report.found[kind]}): {ADVICE[kind]}"


def _counts(verified: Verified) -> Iterator[str]:
    scope, report = verified.scope, verified.report
    begin = scope.window.from_
    since = "the beginning" if begin == EPOCH else _time(begin)
    yield f"  checked   {_many(report.jobs, 'job')}, from {since} to {_time(scope.window.to)}"
    if scope.clamped:
        yield "            (what is older than that has left the database)"
    yield f"  expected  {_many(report.expected, 'instant')}"
    yield f"  fired     {report.fired:,}"
    yield f"  skipped   {report.skipped:,}"
    if report.due:
        yield f"  due       {report.due:,} (not settled yet)"


def _problem(problem: Problem) -> Iterator[str]:
    when = ""
    if problem.from_ is not None and problem.to is not None:
        when = f"  {_time(problem.from_)}"
        if problem.to != problem.from_:
            when += f" to {_time(problem.to)} ({_many(problem.count, 'instant')})"
    yield f"  {problem.kind:<10}{when}"
    yield f"              {problem.why}"


def _time(at: datetime) -> str:
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", precision) + " UTC"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def as_document(verified: Verified) -> str:
    """As the API answers."""
    view = report_view(verified.scope, verified.report)
    return msgspec.json.format(msgspec.json.encode(view)).decode()
