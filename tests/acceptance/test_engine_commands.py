"""Commands on the whole engine: real processes, asked for over the API."""

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foliot.runtime.chance import random_name
from foliot.runtime.envelope import new_key_line
from foliot.testing.commands import eventually, is_alive
from foliot.testing.engine import Engine
from foliot.testing.visitor import Visitor

ALLOW = {"FOLIOT_COMMANDS": "/bin/sh"}
CANARY = "canary-7f3a9b1c-c0ffee5eed42"


def run(visitor: Visitor, *argv: str, env: Mapping[str, str] | None = None, **fields: Any) -> str:  # noqa: ANN401
    body = {
        "name": f"command {random_name()}",
        "schedule": {"type": "MANUAL"},
        "target": {"type": "COMMAND", "argv": ["/bin/sh", "-c", *argv], "env": dict(env or {})},
    }
    job = visitor.call("POST", "/jobs", body | fields)
    return str(visitor.call("POST", f"/jobs/{job['job_id']}/trigger")["execution_id"])


@contextmanager
def running(url: str, folder: Path, **environ: str) -> Iterator[tuple[Engine, Visitor]]:
    engine = Engine(url, folder)
    with engine.api(**ALLOW, **environ), engine.scheduler():
        yield engine, engine.visitor


def test_a_command_runs_where_it_is_allowed_and_waits_where_it_is_not(
    database_url: str, tmp_path: Path
) -> None:
    with running(database_url, tmp_path) as (engine, visitor):
        with engine.worker() as worker:
            worker.line_with("serves default: HTTP")
            execution = run(visitor, 'read x; printf "{\\"got\\": %s}" "$x"', payload={"a": 1})
            told = visitor.until_told(execution, "NO_WORKER")
            assert "FOLIOT_COMMANDS" in told["way_out"]
        assert visitor.execution(execution)["status"] == "QUEUED"
        with engine.worker(**ALLOW):
            ended = visitor.until(execution, "SUCCEEDED")
            assert ended["result"] == {"got": {"a": 1}}
            assert ended["attempt_number"] == 1


def test_failures_are_retried_by_their_exit_codes(database_url: str, tmp_path: Path) -> None:
    policy = {"max_attempts": 2, "initial_delay_seconds": 0.01}
    with running(database_url, tmp_path) as (engine, visitor), engine.worker(**ALLOW):
        again = run(visitor, "echo no >&2; exit 1", retry_policy=policy)
        never = run(visitor, "exit 64", retry_policy=policy)
        once = run(visitor, 'test "$FOLIOT_ATTEMPT_NUMBER" = 2', retry_policy=policy)
        error = visitor.until(again, "FAILED", "DEAD_LETTERED")["error"]
        assert error["type"] == "EXIT_CODE"
        assert error["message"] == "the program exited with status 1: no"
        visitor.until(never, "FAILED", "DEAD_LETTERED")
        visitor.until(once, "SUCCEEDED")
        attempts = [str(row["id"]) for row in engine.attempts()]
        assert [attempts.count(one) for one in (again, never, once)] == [2, 1, 2]


def test_a_cancelled_command_gives_its_slot_back(database_url: str, tmp_path: Path) -> None:
    text = "trap '' TERM; sleep 1000 & echo $! $$; while :; do sleep 0.05; done"
    with (
        running(database_url, tmp_path) as (engine, visitor),
        engine.worker("--concurrency", "1", **ALLOW),
    ):
        execution = run(visitor, text, cancel_grace_seconds=0.2)
        pids = eventually(lambda: visitor.said(execution) or None, what="it says who it is")[0]
        following = run(visitor, "true")
        visitor.call("POST", f"/executions/{execution}/cancel")
        visitor.until(execution, "CANCELLED")
        visitor.until(following, "SUCCEEDED")
        assert not any(is_alive(int(pid)) for pid in pids.split())


def test_a_killed_worker_takes_its_commands_with_it(database_url: str, tmp_path: Path) -> None:
    text = "trap '' TERM HUP; setsid sleep 1000 & echo $! $$; while :; do sleep 0.05; done"
    with running(database_url, tmp_path) as (engine, visitor), engine.worker(**ALLOW) as worker:
        execution = run(visitor, text)
        pids = eventually(lambda: visitor.said(execution) or None, what="it says who it is")[0]
        worker.send(signal.SIGKILL)
        for pid in map(int, pids.split()):
            eventually(lambda pid=pid: not is_alive(pid), what=f"{pid} is gone")  # type: ignore[misc]


def test_a_secret_that_a_command_was_given_is_masked(database_url: str, tmp_path: Path) -> None:
    keys = {"FOLIOT_SECRET_KEYS": new_key_line()}
    tell = 'echo "$TOKEN" "$1"; cat; echo "$TOKEN" | base64 >&2; printf "$TOKEN" >&2; exit '
    fields = {"payload": {"x": "${secrets.CANARY}"}, "retry_policy": {"max_attempts": 1}}
    env = {"TOKEN": "${secrets.CANARY}"}
    with running(database_url, tmp_path, **keys) as (engine, visitor):
        visitor.call("PUT", "/secrets/CANARY", {"value": CANARY})
        with engine.worker(**ALLOW, **keys) as worker:
            shown = []
            for code in ("0", "1"):
                argv = (tell + code, "x", "${secrets.CANARY}")
                execution = run(visitor, *argv, env=env, **fields)
                ended = visitor.until(execution, "SUCCEEDED", "FAILED", "DEAD_LETTERED")
                lines = eventually(
                    lambda execution=execution: visitor.said(execution) or None,  # type: ignore[misc]
                    what="it has spoken",
                )
                shown.append(json.dumps([ended, lines]))
            worker.stop()
            shown.append(worker.output)
    assert "***" in shown[0]
    assert "***" in shown[1]
    assert not [text for text in shown if CANARY in text or CANARY[:12] in text]


def test_a_setting_that_is_no_path_stops_the_start(database_url: str, tmp_path: Path) -> None:
    engine = Engine(database_url, tmp_path)
    with engine.worker(FOLIOT_COMMANDS="backup") as worker:
        assert worker.line_with("FOLIOT_COMMANDS: 'backup' is not the whole path of a program")
        assert worker.ended() != 0
