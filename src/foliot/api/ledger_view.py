"""The ledger as it is answered, by the API and by the command line."""

from typing import Any

from foliot.core.ids import EPOCH
from foliot.core.schedule.ledger import JobLedger, Problem, Report
from foliot.store.ledger import Scope


def report_view(scope: Scope, report: Report) -> dict[str, Any]:
    begin = scope.window.from_
    return {
        "ok": report.holds,
        "jobs": report.jobs,
        "expected": report.expected,
        "fired": report.fired,
        "skipped": report.skipped,
        "due": report.due,
        "problem_counts": {str(kind): count for kind, count in sorted(report.found.items())},
        "problems": [_problem_view(ledger, problem) for ledger, problem in report.named],
        "truncated": report.truncated,
        "checked_from": None if begin == EPOCH else begin,
        "checked_to": scope.window.to,
        "clamped": scope.clamped,
    }


def _problem_view(ledger: JobLedger, problem: Problem) -> dict[str, Any]:
    return {
        "job_id": ledger.job_id,
        "job_name": ledger.name,
        "kind": problem.kind,
        "from_instant": problem.from_,
        "to_instant": problem.to,
        "count": problem.count,
        "why": problem.why,
    }
