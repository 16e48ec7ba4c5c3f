"""Who ends how when the process of several attempts has died."""

import signal
from dataclasses import replace

import pytest

from foliot.worker.hosts.verdict import Death, verdict
from foliot.worker.tasks import Crashed, HandedBack

MINE, ANOTHERS = 1, 2
EXITED = Death(status=3, running=MINE, is_shared=True)


def test_who_had_not_begun_is_handed_back() -> None:
    death = replace(EXITED, running=ANOTHERS)
    assert isinstance(verdict(death, MINE, has_begun=False), HandedBack)


def test_whose_code_ran_had_begun_even_if_nobody_had_heard_of_it() -> None:
    assert isinstance(verdict(EXITED, MINE, has_begun=False), Crashed)


def test_whose_code_ran_did_it_and_the_others_are_free() -> None:
    assert isinstance(verdict(EXITED, MINE, has_begun=True), Crashed)
    assert isinstance(verdict(EXITED, ANOTHERS, has_begun=True), HandedBack)


@pytest.mark.parametrize(
    "death",
    [
        replace(EXITED, running=0),
        replace(EXITED, status=-signal.SIGKILL),
        replace(EXITED, status=None, running=0),
    ],
)
def test_where_nobody_knows_whose_doing_it_was_all_are_suspects(death: Death) -> None:
    for ticket in (MINE, ANOTHERS):
        ended = verdict(death, ticket, has_begun=True)
        assert isinstance(ended, Crashed)
        assert not ended.alone


def test_a_process_of_its_own_leaves_no_doubt() -> None:
    death = Death(status=-signal.SIGSEGV, running=MINE, is_alone=True)
    ended = verdict(death, MINE, has_begun=True)
    assert isinstance(ended, Crashed)
    assert ended.alone
    assert ended.failure.message == "its process was ended by SIGSEGV"


def test_a_host_that_the_worker_killed_frees_all_but_who_kept_the_loop() -> None:
    death = Death(-signal.SIGKILL, running=MINE, was_killed=True, blocker=MINE, is_shared=True)
    ended = verdict(death, MINE, has_begun=True)
    assert isinstance(ended, Crashed)
    assert not ended.alone
    assert isinstance(verdict(death, ANOTHERS, has_begun=True), HandedBack)
    assert isinstance(verdict(replace(death, blocker=0), MINE, has_begun=True), HandedBack)


def test_a_process_that_could_not_be_started_says_why() -> None:
    death = Death(75, running=0, reason="no process: too many")
    assert verdict(death, MINE, has_begun=False) == HandedBack("no process: too many")


def test_a_signal_without_a_name_has_its_number() -> None:
    death = Death(-63, running=MINE)
    ended = verdict(death, MINE, has_begun=True)
    assert isinstance(ended, Crashed)
    assert "63" in ended.failure.message
