"""Guards of schedules: each instant once, under one version, by the owner of its shard."""

from typing import Final

from chaos.zoo.guard import Cut, Guard, Invariant, Named

FIRE: Final = "store/functions/fire.sql"
SHARDS: Final = "tests/store/test_shards.py"
FIRING: Final = "tests/store/test_firing.py"
SETTLING: Final = "tests/store/test_job_settling.py"
STANDING: Final = "tests/store/test_changes_standing_still.py"
# Who waits for a lock gets it within a second or not at all.
CONFLICT: Final = "TransactionConflict"

FIRES: Final = (
    Guard(
        "fire-compare-and-set",
        "a scheduler that comes second advances the job again",
        (
            Cut(
                FIRE,
                "j.id = x.job_id and j.next_instant = x.expected\n",
                "j.id = x.job_id\n",
            ),
        ),
        (Named(f"{FIRING}::test_eight_schedulers_fire_each_instant_once"),),
    ),
    Guard(
        "fire-version-check",
        "an instant is fired under a schedule that was changed meanwhile",
        (Cut(FIRE, "j.schedule_version = x.version and j.status", "j.status"),),
        (Named(f"{FIRING}::test_a_job_that_is_no_longer_as_seen_fires_nothing"),),
    ),
    Guard(
        "fire-only-active",
        "a job that was paused meanwhile fires",
        (Cut(FIRE, " and j.status = 'ACTIVE' and coalesce", " and coalesce"),),
        (Named(f"{FIRING}::test_a_job_that_is_no_longer_as_seen_fires_nothing"),),
    ),
    Guard(
        "fire-passes-over-locked",
        "one job in use keeps the whole batch from firing",
        (Cut(FIRE, "for no key update skip locked) j)", "for no key update) j)"),),
        (Named(f"{FIRING}::test_a_locked_job_is_passed_over_and_the_others_fire", CONFLICT),),
    ),
    Guard(
        "fire-overlap-check",
        "a job that may not overlap runs beside itself",
        (Cut(FIRE, "when d.busy then 0 else least(d.fires, 1)", "else least(d.fires, 1)"),),
        (
            Named("tests/store/test_firing_overlap.py::test_the_server_decides_as_the_core_does"),
            Invariant("overlap-and-misfire"),
        ),
    ),
    Guard(
        "instant-in-the-id",
        "instants of one millisecond are taken for one",
        (
            Cut(
                "core/ids.py",
                "    at = microseconds(instant)\n",
                "    at = microseconds(instant) // 1_000 * 1_000\n",
            ),
        ),
        (Named(f"{FIRING}::test_instants_of_one_millisecond_have_executions_of_their_own"),),
    ),
    Guard(
        "settle-before-edit",
        "instants that were due under the old schedule vanish with an edit",
        (
            Cut(
                "store/jobs.py",
                "        stored = await settle_before_change(session, stored)\n    plan =",
                "        pass\n    plan =",
            ),
        ),
        (Named(f"{SETTLING}::test_an_edit_settles_what_is_due_under_the_old_version"),),
    ),
    Guard(
        "settle-before-pause",
        "an instant that was due before the pause is neither fired nor skipped by it",
        (
            Cut(
                "store/jobs.py",
                "        stored = await settle_before_change(session, stored)\n        advance(",
                "        advance(",
            ),
        ),
        (Named(f"{SETTLING}::test_a_pause_settles_and_then_nothing_fires"),),
    ),
    Guard(
        "settle-locks-no-flow",
        "who changes a job and stands still keeps the other jobs of its flow from firing",
        (Cut("store/job_settling.py", "now=now, park=True)", "now=now)"),),
        (
            Named(
                f"{STANDING}::"
                "test_a_change_that_is_not_committed_keeps_no_other_job_of_its_flow_from_firing"
            ),
        ),
    ),
    Guard(
        "parked-as-of-now",
        "what a resumed job makes up for is released only by the next look at everything",
        (
            Cut(
                FIRE,
                "greatest(p.run_at, case when p_flow_queues is null then moment end)",
                "p.run_at",
            ),
        ),
        (Named(f"{STANDING}::test_what_a_change_fires_is_found_by_the_next_release"),),
    ),
    Guard(
        "edit-version-check",
        "two people edit one version, and the second undoes the first",
        (
            Cut(
                "store/jobs.py",
                "if expected is not None and expected !=",
                "if False and expected !=",
            ),
        ),
        (Named("tests/store/test_jobs.py::test_of_many_edits_of_one_version_one_wins"),),
    ),
    Guard(
        "take-compares-epoch",
        "who acts on an old reading takes a shard that another has just taken and lost",
        (
            Cut(
                "store/functions/take_shards.sql",
                " and l.epoch = p_epochs[array_position(p_shards, l.shard)]\n",
                "\n",
            ),
        ),
        (Named(f"{SHARDS}::test_who_acts_on_an_old_reading_takes_nothing"),),
    ),
    Guard(
        "take-raises-epoch",
        "an old owner cannot be told from the new one",
        (Cut("store/functions/take_shards.sql", "epoch = l.epoch + 1", "epoch = l.epoch"),),
        (
            Named(f"{SHARDS}::test_what_is_taken_is_held_for_a_lease_under_a_new_epoch"),
            Invariant("epochs-rise"),
        ),
    ),
    Guard(
        "take-waits-for-the-lease",
        "shards are taken from owners that live",
        (
            Cut(
                "store/functions/take_shards.sql",
                "\n       and (l.owner is null or l.expires_at <= moment)",
                "",
            ),
        ),
        (Named(f"{SHARDS}::test_what_another_holds_cannot_be_taken_until_its_lease_runs_out"),),
    ),
    Guard(
        "take-skips-locked",
        "a frozen owner's lock holds up whoever takes over",
        (
            Cut(
                "store/functions/take_shards.sql",
                "for no key update skip locked",
                "for no key update",
            ),
        ),
        (Named(f"{SHARDS}::test_who_takes_waits_for_nobody", CONFLICT),),
    ),
    Guard(
        "renew-compares-epoch",
        "a lease that went away and came back is taken for the one that was held",
        (
            Cut(
                "store/functions/renew_shards.sql",
                " and l.owner = p_id\n"
                "       and l.epoch = p_epochs[array_position(p_shards, l.shard)]",
                " and l.owner = p_id",
            ),
        ),
        (
            Named(
                f"{SHARDS}::test_a_lease_that_went_to_another_and_came_back_is_not_the_one_we_had"
            ),
        ),
    ),
    Guard(
        "give-back-is-fenced",
        "a late giving back frees what its giver took anew",
        (
            Cut(
                "store/functions/give_shards.sql",
                " and l.epoch = p_epochs[array_position(p_shards, l.shard)])",
                ")",
            ),
        ),
        (Named(f"{SHARDS}::test_a_late_giving_back_does_not_touch_what_was_taken_anew"),),
    ),
    Guard(
        "decide-anew-what-was-held-up",
        "a fire that a stall held up is carried out though it is a misfire by then",
        (
            Cut(
                FIRE,
                "  if moment > p_as_of + interval '5 s' then return; end if;\n",
                "",
            ),
        ),
        (
            Named(
                "tests/store/test_scheduler_held_up.py::test_a_fire_that_was_held_up_is_decided_anew"
            ),
        ),
    ),
    Guard(
        "grace-counts-on-the-way",
        "a fire that outlives its job's grace on its way is carried out",
        (Cut(FIRE, " and coalesce(moment <= x.until, true)", ""),),
        (Named(f"{FIRING}::test_a_grace_that_passes_on_the_way_counts"),),
    ),
    Guard(
        "watch-before-takeover",
        "a node that has just started, or slept, takes over from nodes that live",
        (
            Cut(
                "scheduler/shards.py",
                "takeovers=may_judge(self._watch, LEASE_SECONDS)",
                "takeovers=True",
            ),
        ),
        (
            Named(
                "tests/store/test_scheduler_shards.py::test_after_an_outage_everybody_keeps_what_they_had"
            ),
        ),
    ),
    Guard(
        "free-what-ran-out",
        "what the dead held waits until whoever has just come may take over",
        (
            Cut(
                "core/lease.py", "for lease in left if lease not in take)", "for lease in left[:0])"
            ),
        ),
        (
            Named(
                "tests/store/test_scheduler_shards.py::test_what_a_dead_node_held_goes_to_one_that_has_just_come"
            ),
        ),
    ),
    Guard(
        "watch-while-nobody-can-renew",
        "while leases cannot be written all of them run out, and the first to look takes them over",
        (
            Cut(
                "scheduler/shards.py",
                "DatabaseError:\n            self._watch = None\n",
                "DatabaseError:\n",
            ),
        ),
        (
            Named(
                "tests/store/test_scheduler_shards.py::test_while_no_lease_can_be_renewed_none_that_runs_out_is_taken_over"
            ),
        ),
    ),
    Guard(
        "database-clock-only",
        "a node whose wall clock is wrong fires early, late or not at all",
        (
            Cut(
                "runtime/server_time.py",
                "return EPOCH + timedelta(seconds=self._clock.monotonic() + self._offset())",
                "return datetime.now(UTC)",
            ),
        ),
        (
            Named("tests/acceptance/test_engine_skew.py::test_wrong_clocks_change_nothing"),
            Invariant("no-invention"),
        ),
    ),
)
