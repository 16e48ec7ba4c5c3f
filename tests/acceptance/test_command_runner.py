"""Commands as real processes: what they get, what they give, what is told of them."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from foliot.core.model import ErrorType
from foliot.testing.handlers import Heard
from foliot.testing.programs import (
    GET_DUMPABLE,
    SH,
    command,
    failure,
    is_there,
    prctl,
    result,
    runner_of,
    script,
)
from foliot.worker.commands.environment import PATH
from foliot.worker.commands.runner import CommandRunner
from foliot.worker.tasks import LogSource

REAL_SH = os.path.realpath(SH)
PYTHON = os.path.realpath(sys.executable)
# Signals 32 and 33: nobody but the C library can set them, so they stay as they were inherited.
LIBRARYS_OWN = 0b11 << 31
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandRunner]:
    async with runner_of("*", folder=tmp_path_factory.mktemp("scratch")) as runner:
        yield runner


async def test_output_is_logged_and_is_the_result(runner: CommandRunner) -> None:
    heard = Heard()
    ended = await runner.run(script("echo one; echo two >&2; printf three"), heard)
    assert result(ended) == {"exit_code": 0, "stdout": "one\nthree"}
    assert heard.starts == 1
    assert heard.lines(LogSource.STDOUT) == ["one", "three"]
    assert heard.lines(LogSource.STDERR) == ["two"]


async def test_output_that_is_json_is_the_result(runner: CommandRunner) -> None:
    payload = {"n": [1, "ä", None], "deep": {"a": 1.5}}
    assert result(await runner.run(command("/bin/cat", payload=payload), Heard())) == payload


async def test_without_a_payload_there_is_nothing_to_read(runner: CommandRunner) -> None:
    assert result(await runner.run(script("wc -c"), Heard()))["stdout"].strip() == "0"


async def test_a_large_payload_need_not_be_read(runner: CommandRunner) -> None:
    task = command("/bin/true", payload={"x": "y" * 250_000})
    assert result(await runner.run(task, Heard())) == {"exit_code": 0, "stdout": ""}


async def test_it_knows_its_attempt_and_nothing_of_the_workers(runner: CommandRunner) -> None:
    env = {"OWN": "a b$c", "LANG": "de_DE"}
    task = command("/usr/bin/env", "-0", env=env, fence=7, attempt_number=3)
    told = result(await runner.run(task, Heard()))["stdout"].replace("\ufffd", "\0").split("\0")
    found = dict(word.split("=", 1) for word in told if word)
    folder = found.pop("HOME")
    assert found == {
        "PATH": PATH,
        "LANG": "de_DE",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": folder,
        "OWN": "a b$c",
        "FOLIOT_EXECUTION_ID": str(task.execution_id),
        "FOLIOT_JOB_ID": str(task.job_id),
        "FOLIOT_JOB_NAME": task.job_name,
        "FOLIOT_ATTEMPT_NUMBER": "3",
        "FOLIOT_FENCE": "7",
        "FOLIOT_IDEMPOTENCY_KEY": "key",
        "FOLIOT_SCHEDULED_TIME": "2026-01-01T00:00:00Z",
    }


async def test_the_processes_above_it_have_no_secret_either(runner: CommandRunner) -> None:
    text = "p=$PPID; cat /proc/$p/environ; p=$(ps -o ppid= $p); cat /proc/$((p))/environ"
    heard = Heard()
    await runner.run(script(text), heard)
    said = "\n".join(heard.lines())
    assert "LANG=C.UTF-8" in said
    assert "hunter2" not in said


async def test_the_workers_memory_is_closed_to_its_own_user(runner: CommandRunner) -> None:  # noqa: ARG001
    assert prctl(GET_DUMPABLE, 0) == 0


async def test_it_is_in_a_folder_of_its_own_that_goes_with_it(runner: CommandRunner) -> None:
    task = script("pwd; ls -A; mkdir -p a/b; echo x > a/b/c; chmod 0 a/b")
    folder, *rest = result(await runner.run(task, Heard()))["stdout"].split()
    assert rest == []
    assert not is_there(folder)


async def test_a_deep_tree_goes_with_it_and_costs_it_nothing(runner: CommandRunner) -> None:
    task = script("pwd; i=0; while [ $i -lt 1500 ]; do mkdir d && cd -P d; i=$((i+1)); done")
    folder = result(await runner.run(task, Heard()))["stdout"].strip()
    assert not is_there(folder)


async def test_its_end_does_not_depend_on_a_thread_to_tidy_up(
    runner: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as crowded:
        crowded.setattr(asyncio, "to_thread", full)
        ended = await runner.run(script("echo done"), Heard())
    assert result(ended)["stdout"] == "done\n"


async def test_it_has_no_descriptors_but_its_own_and_leads_a_session(runner: CommandRunner) -> None:
    text = "import json, os; print(json.dumps([sorted(map(int, os.listdir('/proc/self/fd'))),"
    text += " os.getsid(0) == os.getpid() == os.getpgrp()]))"
    fds, is_leader = result(await runner.run(command(PYTHON, "-c", text), Heard()))
    assert fds == [0, 1, 2, 3]  # the last is the folder that is being listed
    assert is_leader


async def test_it_is_bound(runner: CommandRunner) -> None:
    text = "ulimit -c; ulimit -n; ulimit -f; grep -E 'NoNewPrivs|SigIgn|SigBlk' /proc/self/status"
    said = result(await runner.run(script(text), Heard()))["stdout"].split()
    assert said[0] == "0"
    assert int(said[1]) <= 1024
    assert said[2] == str(10 * 1024**3 // 512)
    told = dict(zip(said[3::2], said[4::2], strict=True))
    assert told["NoNewPrivs:"] == "1"
    assert int(told["SigBlk:"], 16) == int(told["SigIgn:"], 16) & ~LIBRARYS_OWN == 0


async def test_each_has_a_host_of_its_own(runner: CommandRunner) -> None:
    hosts = [result(await runner.run(script("echo $PPID"), Heard()))["stdout"] for _ in range(3)]
    assert len(set(hosts)) == 3


async def test_arguments_arrive_as_they_are(runner: CommandRunner) -> None:
    odd = [
        "",
        " ",
        "*",
        "$(id)",
        "`id`",
        "; exit 1",
        "a\nb",
        "'\"\\",
        "ä\u202e🎉",
        "-rf",
        "\x7f\x01",
    ]
    text = "import json, sys; print(json.dumps(sys.argv[1:]))"
    assert result(await runner.run(command(PYTHON, "-c", text, *odd), Heard())) == odd


async def test_the_last_words_are_in_the_error(runner: CommandRunner) -> None:
    heard = Heard()
    ended = await runner.run(script("seq 1 5000 >&2; echo the end >&2; exit 3"), heard)
    found = failure(ended)
    assert (found.type, found.detail, found.do_not_retry) == (ErrorType.EXIT_CODE, "3", False)
    assert found.message.startswith("the program exited with status 3: ")
    assert found.message.endswith("5000\nthe end")
    assert len(found.message) < 4200
    assert len(heard.lines(LogSource.STDERR)) == 5001


@pytest.mark.parametrize(("code", "again"), [(1, True), (75, True), (64, False), (78, False)])
async def test_an_exit_code_says_whether_to_try_again(
    runner: CommandRunner, code: int, again: bool
) -> None:
    found = failure(await runner.run(script(f"exit {code}"), Heard()))
    assert (found.detail, found.do_not_retry) == (str(code), not again)


async def test_a_signal_is_named(runner: CommandRunner) -> None:
    found = failure(await runner.run(script("kill -SEGV $$"), Heard()))
    assert (found.message, found.detail) == ("the program was ended by SIGSEGV", "SIGSEGV")
    found = failure(await runner.run(script("kill -KILL $$"), Heard()))
    assert found.message == "the program was ended by SIGKILL (out of memory?)"


async def test_a_program_that_cannot_be_run_says_why(runner: CommandRunner, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"\x7fNOT A PROGRAM")
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/nowhere/interpreter\n")
    for path in (wrong, orphan):
        path.chmod(0o755)
    ends = {
        name: failure(await runner.run(command(str(tmp_path / name)), Heard()))
        for name in ("missing", "plain", "wrong", "orphan")
    }
    assert {name: end.detail for name, end in ends.items()} == {
        "missing": "127",
        "plain": "126",
        "wrong": "126",
        "orphan": "127",
    }
    words = f"{tmp_path}/plain cannot be run: Permission denied"
    assert ends["plain"].message == words
    assert {end.type for end in ends.values()} == {ErrorType.EXIT_CODE}


async def test_too_many_arguments_are_refused_before_the_system_does(runner: CommandRunner) -> None:
    found = failure(await runner.run(command("/bin/true", *["x" * 1000] * 200), Heard()))
    assert (found.type, found.do_not_retry) == (ErrorType.TARGET_REFUSED, True)
    found = failure(await runner.run(command("/bin/true", "a\0b"), Heard()))
    assert found.type is ErrorType.TARGET_REFUSED


async def test_a_gigabyte_of_output_is_cut_and_the_end_still_told(runner: CommandRunner) -> None:
    heard = Heard()
    text = "yes 0123456789abcdef | head -c 1000000000; echo last >&2; exit 9"
    found = failure(await runner.run(script(text, timeout_seconds=120.0), heard))
    assert found.message == "the program exited with status 9: last"
    size = sum(len(line) for line in heard.lines())
    assert size < 11 * 1024**2
    assert any("cut here, after 10 MB" in line for line in heard.lines(LogSource.LOG))


async def test_garbage_is_output_too(runner: CommandRunner) -> None:
    heard = Heard()
    task = script("head -c 100000 /dev/urandom; printf '\\377\\000x\\n' >&2; exit 1")
    assert failure(await runner.run(task, heard)).message.endswith(": \ufffd\ufffdx")
    assert not any("\0" in line for line in heard.lines())


async def test_a_program_may_close_its_output(runner: CommandRunner) -> None:
    ended = await runner.run(script("echo early; exec 0<&- >&- 2>&-; exit 4"), Heard())
    assert failure(ended).detail == "4"


async def test_only_what_is_allowed_is_run(tmp_path: Path) -> None:
    allowed = tmp_path / "bin" / "allowed"
    allowed.parent.mkdir()
    allowed.symlink_to(SH)
    beside = allowed.with_name("beside")
    beside.symlink_to(SH)
    (tmp_path / "link").symlink_to(allowed.parent)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    async with runner_of(str(allowed), folder=scratch) as runner:
        for path in (allowed, tmp_path / "link" / "allowed"):
            ended = await runner.run(command(str(path), "-c", "echo yes"), Heard())
            assert result(ended)["stdout"] == "yes\n"
        for other in (str(beside), str(tmp_path / "link" / "beside"), SH, REAL_SH):
            heard = Heard()
            found = failure(await runner.run(command(other, "-c", "echo no"), heard))
            assert (found.type, found.do_not_retry) == (ErrorType.TARGET_REFUSED, True)
            assert "FOLIOT_COMMANDS" in found.message
            assert heard.starts == 0
