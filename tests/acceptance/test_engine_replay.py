"""From a failure to its mending, by every role: a dead letter, a replay by itself, one by hand."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from foliot.testing.commands import eventually
from foliot.testing.engine import Engine

HANDLERS = """
from foliot import App, Context

app = App()


@app.job
def mend(context: Context, broken: bool) -> dict[str, object]:
    if broken:
        raise ValueError("still broken")
    return {"key": context.idempotency_key}
"""


@pytest.fixture
def engine(database_url: str, tmp_path: Path) -> Engine:
    module = tmp_path / "mending.py"
    module.write_text(HANDLERS)
    return Engine(database_url, tmp_path, module)


def test_what_failed_is_replayed_by_itself_and_at_last_by_hand(engine: Engine) -> None:
    with ExitStack() as stack:
        for role in (engine.api(), engine.scheduler(), engine.worker()):
            stack.enter_context(role)
        visitor = engine.visitor
        job = visitor.make_job(
            "mend",
            retry_policy={"max_attempts": 1},
            dead_letter={"auto_replay_after_seconds": 0.5},
        )
        first = visitor.enqueue(job, {"broken": True})
        visitor.until(first, "FAILED")

        def replayed() -> dict[str, Any] | None:
            letter = visitor.call("GET", f"/dead-letters/{first}")
            return letter if letter["status"] == "REPLAYED" else None

        second = eventually(replayed, what="it is replayed by itself")["replayed_as"]
        again = visitor.until(second, "FAILED")
        assert (again["trigger"], again["retry_of"]) == ("REPLAY", first)
        (letter,) = visitor.call("GET", "/dead-letters")["items"]
        assert (letter["id"], letter["replay_at"]) == (second, None)
        path = f"/dead-letters/{second}/replay"
        third = visitor.call("POST", path, {"payload_override": {"broken": False}})
        end = visitor.until(third["execution_id"], "SUCCEEDED")
        assert end["result"] == {"key": first}, "one key from the first to the last"
        assert visitor.call("GET", "/dead-letters")["items"] == []
