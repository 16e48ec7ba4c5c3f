"""Guards of executions: one holder at a time, one end, limits, and who is dead."""

from typing import Final

from chaos.zoo.guard import Cut, Guard, Invariant, Named

CLAIM: Final = "store/functions/claim.sql"
FINISH: Final = "store/functions/finish.sql"
RESCUE: Final = "store/functions/rescue.sql"
CLAIMING: Final = "tests/store/test_claiming.py"
FINISHING: Final = "tests/store/test_finishing.py"
RESCUING: Final = "tests/store/test_rescue.py"
JUDGING: Final = "tests/store/test_scheduler_rescue.py"

HOLDS: Final = (
    Guard(
        "finish-fence",
        "the end of an attempt that was superseded is written over the new one",
        (Cut(FINISH, " and e.fence = t.fence offset 0", " offset 0"),),
        (Named(f"{FINISHING}::test_a_superseded_outcome_changes_nothing_and_is_told"),),
    ),
    Guard(
        "finish-owner",
        "a worker ends what another holds",
        (Cut(FINISH, " and e.worker_id is not distinct from p_worker_id and", " and"),),
        (Named(f"{FINISHING}::test_a_superseded_outcome_changes_nothing_and_is_told"),),
    ),
    Guard(
        "delete-only-what-nobody-holds",
        "a cancel deletes the row of an attempt that runs, and its end is lost",
        (
            Cut(
                "store/functions/cancel.sql",
                "(select n.tid from named n where n.worker_id is null))",
                "(select n.tid from named n))",
            ),
        ),
        (
            Named(
                "tests/store/test_cancelling.py::test_what_runs_is_asked_and_asking_again_changes_nothing"
            ),
        ),
    ),
    Guard(
        "finish-locks-first",
        "an end that waited for a cancel does not see it",
        (
            Cut(
                FINISH,
                "  perform from unnest(p_ids) t(id)\n"
                "    cross join lateral (select from foliot.executions e"
                " where e.id = t.id for update) e;\n",
                "",
            ),
        ),
        (
            Named(
                "tests/store/test_finishing_races.py::test_a_finish_that_waits_for_a_cancel_sees_it"
            ),
        ),
    ),
    Guard(
        "cancel-holds",
        "what was asked to stop succeeds all the same",
        (
            Cut(
                FINISH,
                "case when e.cancel_requested_at is not null then 'CANCELLED'",
                "case when false then ''",
            ),
        ),
        (
            Named(f"{FINISHING}::test_what_was_asked_to_stop_is_cancelled_whatever_it_says"),
            Invariant("cancel-holds"),
        ),
    ),
    Guard(
        "attempt-counted-at-claim",
        "an attempt that dies is never counted, and kills workers for ever",
        (
            Cut(CLAIM, "attempt_number = e.attempt_number + 1, queue_slot", "queue_slot"),
            Cut(
                FINISH,
                "e.attempt_number - case when o.event in ('RETRY', 'LOSE') then 0 else 1 end",
                "e.attempt_number + case when o.event = 'RETRY' then 1 else 0 end",
            ),
        ),
        (Named(f"{CLAIMING}::test_a_claim_raises_the_fence_and_counts_the_attempt"),),
    ),
    Guard(
        "claim-raises-fence",
        "two holders of one execution cannot be told apart",
        (Cut(CLAIM, "fence = e.fence + 1, attempt_number", "attempt_number"),),
        (
            Named(
                f"{RESCUING}::test_a_rescued_execution_can_be_claimed_and_its_old_worker_is_superseded"
            ),
        ),
    ),
    Guard(
        "claim-lock",
        "claims of one queue run beside each other and pass rows over",
        (Cut(CLAIM, "  perform pg_advisory_xact_lock(21, hashtext(p_queue));\n", ""),),
        (
            Named(
                "tests/store/test_claiming_races.py::test_claims_of_one_queue_come_one_after_another"
            ),
        ),
    ),
    Guard(
        "claim-only-for-the-living",
        "a worker that is dead to the others goes on claiming",
        (Cut(CLAIM, "w.id = p_worker_id and w.status = 'ACTIVE'", "w.id = p_worker_id"),),
        (Named(f"{CLAIMING}::test_a_worker_that_is_not_active_gets_nothing"),),
    ),
    Guard(
        "claim-start-deadline",
        "what should have started long ago starts",
        (
            Cut(
                CLAIM,
                "and e.rank >= l.low and (e.start_by is null or e.start_by > moment)",
                "and e.rank >= l.low",
            ),
        ),
        (Named(f"{CLAIMING}::test_what_may_not_run_is_not_claimed"),),
    ),
    Guard(
        "rescue-repeats-what-it-saw",
        "a rescue takes what was claimed anew since it looked",
        (
            Cut(RESCUE, "e.status = 'RUNNING' and e.fence = t.fence\n", "e.status = 'RUNNING'\n"),
            Cut(RESCUE, "              and e.worker_id is not distinct from t.worker_id\n", ""),
            Cut(
                FINISH,
                "e.worker_id is not distinct from p_worker_id and e.fence = t.fence offset 0",
                "true offset 0",
            ),
        ),
        (Named(f"{RESCUING}::test_what_moved_on_since_it_was_listed_is_left_alone"),),
    ),
    Guard(
        "rescue-from-the-dead-only",
        "what living workers hold is taken from them",
        (
            Cut(
                "store/sql/executions/list_lost.sql",
                " and (w.status is null or w.status = 'DEAD')",
                "",
            ),
        ),
        (
            Named(f"{RESCUING}::test_what_the_dead_hold_is_queued_again"),
            Invariant("effects-fenced"),
        ),
    ),
    Guard(
        "grace-after-an-outage",
        "after an outage every worker is taken for dead",
        (Cut("core/grace.py", " >= expiry_seconds\n", " >= 0\n"),),
        (Named(f"{JUDGING}::test_heartbeats_that_resume_after_an_outage_save_everything"),),
    ),
    Guard(
        "grace-after-a-freeze",
        "a scheduler that slept judges by what it saw before",
        (
            Cut(
                "core/grace.py",
                "if watch is None or _is_gap(watch.latest, reading):",
                "if watch is None:",
            ),
        ),
        (Named(f"{JUDGING}::test_a_scheduler_that_was_frozen_looks_on_before_it_judges"),),
    ),
    Guard(
        "grace-while-nobody-can-write",
        "while a table is locked every worker falls silent, and is taken for dead",
        (
            Cut(
                "scheduler/watching.py",
                "DatabaseError:\n            self._watch = None\n",
                "DatabaseError:\n",
            ),
        ),
        (Named(f"{JUDGING}::test_while_no_heartbeat_or_end_can_be_written_silence_says_nothing"),),
    ),
    Guard(
        "hearing-needs-what-a-heartbeat-needs",
        "a database that can be read is taken for one that hears",
        (
            Cut(
                "store/sql/workers/read_hearing.sql",
                "with heartbeat as (update foliot.workers set started = started where false),\nend",
                "with end",
            ),
        ),
        (Named(f"{JUDGING}::test_while_no_heartbeat_or_end_can_be_written_silence_says_nothing"),),
    ),
    Guard(
        "fresh-identity",
        "a worker that begins anew under its old name is taken for the one that died",
        (
            Cut(
                "worker/life.py",
                'dies of silence."""\n        self.worker_id = WorkerId(fresh_id())\n',
                'dies of silence."""\n        import socket, uuid\n'
                "        host = uuid.uuid5(uuid.NAMESPACE_DNS, socket.gethostname())\n"
                "        self.worker_id = WorkerId(host)\n",
            ),
            # The key would refuse it, and the worker would try for ever.
            Cut(
                "store/sql/workers/register.sql",
                "statement_timestamp()) as now) t;",
                "statement_timestamp()) as now) t"
                " on conflict (id) do update set status = excluded.status;",
            ),
        ),
        (
            Named(
                "tests/store/test_worker_life.py::test_a_worker_that_was_buried_ends_what_it_runs_and_begins_anew"
            ),
        ),
    ),
    Guard(
        "lost-claims-go-back",
        "a claim whose answer was lost is held for ever by a worker that does not know of it",
        (
            Cut(
                "worker/heartbeat.py",
                "        for execution_id, fence in sorted(lost):",
                "        for execution_id, fence in ():",
            ),
        ),
        (
            Named(
                "tests/store/test_worker_trades.py"
                "::test_a_claim_whose_answer_was_lost_goes_back_after_two_heartbeats"
            ),
        ),
    ),
    Guard(
        "progress-is-fenced",
        "a superseded attempt writes over the new one's progress",
        (
            Cut(
                "store/sql/executions/write_progress.sql",
                "e.id = p.id and e.fence = p.fence\n"
                "                 and e.worker_id is not distinct from $1::uuid\n",
                "e.id = p.id and coalesce($1::uuid) is not null\n",
            ),
        ),
        (
            Named(
                "tests/store/test_worker_reports.py::test_progress_is_written_only_by_who_holds_the_row"
            ),
        ),
    ),
    Guard(
        "release-not-early",
        "what should wait runs at once",
        (
            Cut(
                "store/functions/release.sql",
                "       and e.available_at <= told and e.available_at >=",
                "       and e.available_at >=",
            ),
            Cut(
                "store/functions/release.sql",
                "num_nulls(e.rank) = 1 and e.available_at <= told\n",
                "num_nulls(e.rank) = 1\n",
            ),
        ),
        (Named("tests/store/test_releasing.py::test_nothing_goes_before_its_time"),),
    ),
    Guard(
        "limit-lock",
        "a slot is given out twice",
        (
            Cut(
                "store/functions/lock_limits.sql",
                "    perform pg_advisory_xact_lock(22, key);\n",
                "    null;\n",
            ),
        ),
        (
            Named(
                "tests/store/test_admitting.py::test_who_gives_out_slots_of_a_key_waits_for_who_does_already"
            ),
        ),
    ),
    Guard(
        "request-hash",
        "one idempotency key stands for two requests",
        (
            Cut(
                "store/functions/remember_request.sql",
                "if known.request_hash <> p_request_hash then",
                "if false then",
            ),
        ),
        (Named("tests/store/test_enqueuing.py::test_one_key_cannot_be_two_requests"),),
    ),
    Guard(
        "request-once",
        "a request that is sent again is done again",
        (
            Cut(
                "store/functions/enqueue.sql",
                "  if answer is not null then\n",
                "  if false then\n",
            ),
        ),
        (
            Named(
                "tests/store/test_enqueuing.py::test_a_request_sent_again_gets_the_first_answer_even_when_it_is_over"
            ),
        ),
    ),
    Guard(
        "replay-of-the-open-only",
        "a dead letter that somebody has discarded meanwhile is replayed all the same",
        (
            Cut(
                "store/functions/replay.sql",
                "\n         and num_nulls(d.replayed_at, d.discarded_at) = 2) < card",
                ") < card",
            ),
        ),
        (
            Named(
                "tests/store/test_replaying.py::test_who_waits_for_another_sees_what_that_one_decided"
            ),
        ),
    ),
    Guard(
        "unknown-commit-is-looked-up",
        "an end whose answer was lost is written again, and taken for superseded",
        (
            Cut(
                "store/finishing.py",
                "return await settle(database, worker_id, ordered, now)",
                "return await _write(database, worker_id, ordered, now)",
            ),
        ),
        (
            Named(
                "tests/store/test_finishing_races.py::test_after_an_unknown_commit_each_is_looked_up_and_written_once"
            ),
        ),
    ),
)
