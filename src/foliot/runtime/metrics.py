"""What Foliot counts about itself, by the names that dashboards and alerts use.

A counter is raised where the thing happens, in the process that does it. Labels have few values: a
queue, a loop, a status; never an id.
"""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from foliot.runtime.tallies import TallyHistogram

LOOP_PASSES: Final = Counter(
    "foliot_loop_passes_total", "Passes of a loop that ended well.", ["loop"]
)
LOOP_FAILURES: Final = Counter(
    "foliot_loop_failures_total", "Passes of a loop that failed.", ["loop"]
)

HINTS_SENT: Final = Counter("foliot_hints_sent_total", "Messages with hints that were sent.")
HINTS_HEARD: Final = Counter("foliot_hints_heard_total", "Messages with hints that were heard.")
HINTS_FLOW: Final = Gauge("foliot_hints_flow", "1 while hints are known to reach this process.")

# Lateness in seconds: of a fire after its instant, of a start after the execution became available.
_LATENESS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_DURATION: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)

JOBS_TRIGGERED: Final = Counter("foliot_jobs_triggered_total", "Instants that became executions.")
INSTANTS_SKIPPED: Final = Counter("foliot_instants_skipped_total", "Instants that were skipped.")
TRIGGER_DELAY: Final = TallyHistogram(
    "foliot_trigger_delay_seconds", "From an instant's due time to its fire.", bounds=_LATENESS
)
FIRE_ERRORS: Final = Counter("foliot_fire_errors_total", "Jobs that the database refused to fire.")
OVERDUE_JOBS: Final = Gauge(
    "foliot_overdue_jobs", "Jobs overdue by more than a second, when last seen."
)
OLDEST_INSTANT: Final = Gauge(
    "foliot_oldest_overdue_instant_seconds", "How long the oldest due instant has waited."
)
OLDEST_LEASE: Final = Gauge(
    "foliot_oldest_expired_lease_seconds", "How long ago the oldest silent worker ran out of time."
)
OLDEST_CALLBACK: Final = Gauge(
    "foliot_oldest_undelivered_callback_seconds", "How long the oldest due callback has waited."
)
DELIVERIES: Final = Counter(
    "foliot_deliveries_total", "Tries of completion callbacks, by what became of them.", ["result"]
)
SHARDS_OWNED: Final = Gauge("foliot_shards_owned", "Shards that this scheduler holds.")
SHARDS_WITHOUT_OWNER: Final = Gauge(
    "foliot_shards_without_owner", "Shards that no scheduler holds."
)
UNSERVED: Final = Gauge(
    "foliot_unserved_executions",
    "Executions that could be claimed and that no live worker serves, up to 1,000 a lane.",
    ["queue"],
)
EXECUTIONS_RELEASED: Final = Counter(
    "foliot_executions_released_total", "Waiting rows made claimable."
)
EXECUTIONS_RESCUED: Final = Counter(
    "foliot_executions_rescued_total", "Rows taken from dead workers."
)
EXECUTIONS_EXPIRED: Final = Counter(
    "foliot_executions_expired_total", "Start deadlines that passed."
)
WORKER_DEATHS: Final = Counter("foliot_worker_deaths_total", "Workers that fell silent.")

EXECUTIONS_CLAIMED: Final = Counter("foliot_executions_claimed_total", "Claims.", ["queue"])
EXECUTIONS_STARTED: Final = Counter("foliot_executions_started_total", "Attempts begun.", ["queue"])
EXECUTIONS_FINISHED: Final = Counter(
    "foliot_executions_finished_total",
    "Attempts ended, by what became of them.",
    ["queue", "status"],
)
EXECUTIONS_SUPERSEDED: Final = Counter(
    "foliot_executions_superseded_total", "Results that came too late to count."
)
EXECUTION_DURATION: Final = TallyHistogram(
    "foliot_execution_duration_seconds", "How long an attempt ran.", ["queue"], bounds=_DURATION
)
START_DELAY: Final = TallyHistogram(
    "foliot_start_delay_seconds", "From available to started.", ["queue"], bounds=_LATENESS
)
RETRIES: Final = Counter("foliot_retries_total", "Attempts that will be made again.", ["queue"])
TIMEOUTS: Final = Counter("foliot_timeouts_total", "Attempts that ran out of time.", ["queue"])
DEAD_LETTERS: Final = Counter(
    "foliot_dead_letters_total", "Executions given up.", ["queue", "reason"]
)
DEAD_LETTERS_OPEN: Final = Gauge(
    "foliot_dead_letters_open", "Dead letters that await a decision, up to 100,000."
)
OLDEST_DEAD_LETTER: Final = Gauge(
    "foliot_oldest_dead_letter_seconds", "How long the oldest of them has."
)
DEAD_LETTERS_REPLAYED: Final = Counter(
    "foliot_dead_letters_auto_replayed_total",
    "Dead letters replayed because their job asks for it.",
)
ACTIVE_EXECUTIONS: Final = Gauge("foliot_active_executions", "Attempts under way in this worker.")
WORKER_CAPACITY: Final = Gauge("foliot_worker_capacity", "Attempts that this worker runs at once.")
STORE_ERRORS: Final = Counter("foliot_store_errors_total", "Statements that failed.", ["kind"])

API_REQUESTS: Final = Counter(
    "foliot_api_requests_total", "Requests answered.", ["method", "route", "status"]
)
API_DURATION: Final = Histogram(
    "foliot_api_request_duration_seconds", "How long an answer took.", buckets=_LATENESS
)
