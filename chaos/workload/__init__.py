"""The seeded work of a run: which jobs there are, and what clients ask over HTTP meanwhile.

`plan_jobs` is pure; `set_up` makes its jobs, `run` lets clients loose until it is told to stop,
`calm` pauses every schedule. A job's kind is its name without the number, and its label `kind`. All
that is expected of a job stands in its definition; what an attempt does, in handler and payload.

| kind | what it does | what must hold, however it is disturbed |
|---|---|---|
| tick | `quick`, `*/n` crons, each overlap and misfire policy | SUCCEEDED, or cancelled |
| zoned | `quick`, minute and hour lists in a zone | the same |
| interval, jittered, bounded | `quick`; bounded has max_runs | the same |
| apart | `apart`, a process of its own, up to 0.2 s | the same |
| overlap | `slow`, longer than its period, each policy | but for ALLOW one at a time |
| lasting | `slow`, 10 to 30 s, longer than a worker may be silent | SUCCEEDED, or cancelled |
| stumbling | `stumble` fails at attempts 1..failures | SUCCEEDED, or cancelled |
| doomed, parent-002 | `stumble` always fails | FAILED after max_attempts, dead letter EXHAUSTED |
| hanging | `hang`, ends when told; timeout 1.5 s | TIMED_OUT, a dead letter |
| deaf | `deaf`, must be killed; timeout 1 s, grace 0.5 s | TIMED_OUT, a dead letter |
| poison, poison-shared | end their process, own or shared | FAILED, dead letter POISON |
| snoozing | `snooze` while fence <= snoozes | SUCCEEDED; a snooze costs no attempt |
| limited-job, asked-limited | `slow`, concurrency.limit 2 | never 3 at once |
| limited-key | `slow`, keys user-0 and user-1, limit 2, several jobs | never 3 at once of a key |
| narrow, asked-narrow | queue `narrow`, whose limit is 2 | never 3 at once in the queue |
| gated, asked-gated | queue `gated`; it and `narrow` are paused for moments | nothing starts then |
| called, called-slow, asked-called | HTTP, the sink is called | SUCCEEDED, or cancelled |
| called-stumbling | HTTP, 503 at attempt 1 | SUCCEEDED, or cancelled |
| rated, asked-rated | `quick`, rate_limit | no more starts in any period than count |
| deadline, asked-soon | `slow`, one at a time, start_deadline_seconds | EXPIRED if not begun |
| unstorable | a result that cannot be stored | SUCCEEDED, result_truncated |
| parent, follower | AFTER: ALL, ANY, SUCCEEDED, FINISHED, of a follower | a fire has its parents |
| asked-* | MANUAL, run when a client asks | as their namesakes |
| once-one_time, once-delayed, once-immediate | one instant, some late | run or MISFIRE |
| passing | crons with start_at, end_at, max_runs; deleted | as tick, nothing after the delete |

With the tag `changed` a job is edited, paused, resumed and triggered by clients. Any execution may
be cancelled by a client. `quick`, `slow`, `apart` and those who stumble or snooze have so many
attempts and crashes to spare that no number of lost workers alone ends them.

Actions of exchanges that change something: create, edit (PATCH and PUT), pause, resume, delete,
trigger, enqueue, bulk, cancel, replay, limit queue, pause queue, resume queue. A body has besides
what was sent: `If-Match`, the version that went in the header; `dead_letter_id` of a replay;
`queue` of what is done to one. The mark of a request, its key, is `labels.request` of an enqueue
(`key#place` in a bulk) and `payload_override.request` of a trigger. With `unique_key` an enqueue
may be answered, with 200, by an execution that another request made. A key that was answered and
is sent with another body, whose mark is `key-other`, must be refused with 422. A version that is 7
ahead must be refused with 409.
"""

from chaos.workload.calling import Address
from chaos.workload.clients import Known
from chaos.workload.plan import Plan, plan_jobs
from chaos.workload.running import calm, run, set_up

__all__ = ["Address", "Known", "Plan", "calm", "plan_jobs", "run", "set_up"]
