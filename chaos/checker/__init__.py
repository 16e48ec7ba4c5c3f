"""A pure checker: what a run left behind goes in, a verdict on each named invariant comes out.

An invariant holds if it was looked at often enough and nothing was found against it.
"""

import traceback
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from chaos.checker.claims import check_one_claim_at_a_time, check_stale_end_refused
from chaos.checker.coverage import check_shards_covered
from chaos.checker.edits import check_edits_and_pauses
from chaos.checker.effects import check_effects_fenced
from chaos.checker.failures import check_failures_meant
from chaos.checker.history import History
from chaos.checker.instants import check_instants_once, check_no_invention
from chaos.checker.leases import SHARDS, check_epochs_rise, check_stale_lease_refused
from chaos.checker.limits import check_limits_held, check_rates_held
from chaos.checker.liveness import check_no_limbo, check_poison_isolated
from chaos.checker.misfires import check_misfires
from chaos.checker.outages import check_outages_forgiven
from chaos.checker.overlaps import check_overlaps
from chaos.checker.paths import check_legal_path, check_terminal_is_final
from chaos.checker.pauses import check_pauses_hold
from chaos.checker.reports import check_stale_reports_refused
from chaos.checker.requests import check_cancel_holds, check_requests_once
from chaos.checker.retries import check_dead_letters_once, check_retries_bounded
from chaos.checker.starts import check_deadlines_kept, check_never_early
from chaos.checker.verdict import Findings, Verdict
from chaos.checker.weather import check_clocks_ignored, check_quiet
from chaos.facts import Facts

Check = Callable[[History, Findings], None]


def check_overlap_and_misfire(history: History, findings: Findings) -> None:
    check_overlaps(history, findings)
    check_misfires(history, findings)


INVARIANTS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "instants-once": check_instants_once,
        "no-invention": check_no_invention,
        "never-early": check_never_early,
        "overlap-and-misfire": check_overlap_and_misfire,
        "edits-and-pauses": check_edits_and_pauses,
        "pauses-hold": check_pauses_hold,
        "requests-once": check_requests_once,
        "epochs-rise": check_epochs_rise,
        "stale-lease-refused": check_stale_lease_refused,
        "shards-covered": check_shards_covered,
        "one-claim-at-a-time": check_one_claim_at_a_time,
        "outages-forgiven": check_outages_forgiven,
        "stale-end-refused": check_stale_end_refused,
        "stale-reports-refused": check_stale_reports_refused,
        "effects-fenced": check_effects_fenced,
        "failures-meant": check_failures_meant,
        "legal-path": check_legal_path,
        "terminal-is-final": check_terminal_is_final,
        "cancel-holds": check_cancel_holds,
        "retries-bounded": check_retries_bounded,
        "deadlines-kept": check_deadlines_kept,
        "dead-letters-once": check_dead_letters_once,
        "limits-held": check_limits_held,
        "rates-held": check_rates_held,
        "no-limbo": check_no_limbo,
        "poison-isolated": check_poison_isolated,
        "clocks-ignored": check_clocks_ignored,
        "quiet": check_quiet,
    }
)

# How often each must have been looked at, for a second of the run; at least once in any case.
PER_SECOND: Final[Mapping[str, float]] = MappingProxyType(
    {
        "instants-once": 20,
        "no-invention": 20,
        "never-early": 10,
        "overlap-and-misfire": 10,
        "edits-and-pauses": 0.1,
        "pauses-hold": 0.03,
        "requests-once": 0.2,
        "epochs-rise": 1,
        "stale-lease-refused": 5,
        "shards-covered": 0.1,
        "one-claim-at-a-time": 10,
        "outages-forgiven": 0,
        "stale-end-refused": 0.02,
        "stale-reports-refused": 1,
        "effects-fenced": 10,
        "failures-meant": 10,
        "legal-path": 30,
        "terminal-is-final": 10,
        "cancel-holds": 0.05,
        "retries-bounded": 0.2,
        "deadlines-kept": 10,
        "dead-letters-once": 0.05,
        "limits-held": 0.5,
        "rates-held": 0.1,
        "no-limbo": 10,
        "poison-isolated": 1,
        "clocks-ignored": 30,
        "quiet": 0.2,
    }
)
OUTAGE_IN_SECONDS: Final = 300.0


def demands(seconds: float) -> dict[str, int]:
    """How often each invariant must have been looked at in a run of this length. Shards are 64,
    however long it is, and after the last faults at least half of them have an owner; a long outage
    comes in every 300 s, and a worker lives through it."""
    wanted = {name: max(1, int(rate * seconds)) for name, rate in PER_SECOND.items()}
    outages = int(seconds / OUTAGE_IN_SECONDS)
    covered = SHARDS // 2 + wanted["shards-covered"]
    return wanted | {"shards-covered": covered, "epochs-rise": SHARDS, "outages-forgiven": outages}


def check(facts: Facts, wanted: Mapping[str, int]) -> tuple[Verdict, ...]:
    """One verdict for each invariant, in their order; one that nobody asks for is looked at too."""
    history = History(facts)
    return tuple(_verdict(history, name, wanted.get(name, 0)) for name in INVARIANTS)


def _verdict(history: History, name: str, wanted: int) -> Verdict:
    """Facts that make no sense at all are no reason to hear nothing of the other invariants."""
    findings = Findings()
    try:
        INVARIANTS[name](history, findings)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        where = traceback.format_tb(error.__traceback__)[-1].split("\n")
        findings.violate(f"it cannot be checked: {error!r}", filter(None, where))
    return findings.verdict(name, wanted)
