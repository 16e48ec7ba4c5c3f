"""Every kind of step there is, by name."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from foliot.core.states import ExecutionEvent
from foliot.testing.model.changes import Bury, ForgetClocks
from foliot.testing.model.plans import Pick, Plans
from foliot.testing.model.state import StoreModel
from foliot.testing.model.steps import Admit, AnyStep, Expire, ReleaseOverlaps, Rescue

_GIVEN_BACK: Final = (
    ExecutionEvent.RETRY,
    ExecutionEvent.SNOOZE,
    ExecutionEvent.HAND_BACK,
    ExecutionEvent.HOLD,
)


class Kind(StrEnum):
    FIRE = "fire"
    FIRE_AGAIN = "fire again"
    ENQUEUE = "enqueue"
    BACKFILL = "backfill"
    ASK_AGAIN = "ask again"
    RELEASE = "release"
    RELEASE_OVERLAPS = "release overlaps"
    ADMIT = "admit"
    CLAIM = "claim"
    FINISH = "finish"
    GIVE_BACK = "give back"
    CANCEL = "cancel"
    EXPIRE = "expire"
    BEAT = "beat"
    BURY = "bury"
    RESCUE = "rescue"
    REGISTER = "register"
    LEAVE = "leave"
    CREATE_JOB = "create job"
    EDIT_JOB = "edit job"
    CHANGE_JOB = "change job"
    PUT_LIMIT = "put limit"
    PAUSE_QUEUE = "pause queue"
    FORGET_CLOCKS = "forget clocks"


Planner = Callable[[Plans, StoreModel, Pick], AnyStep | None]

PLANNERS: Final[Mapping[Kind, Planner]] = MappingProxyType(
    {
        Kind.FIRE: Plans.fire,
        Kind.FIRE_AGAIN: lambda plans, _, pick: plans.fire_again(pick),
        Kind.ENQUEUE: Plans.enqueue,
        Kind.BACKFILL: Plans.backfill,
        Kind.ASK_AGAIN: Plans.ask_again,
        Kind.RELEASE: lambda plans, _, pick: plans.release(pick),
        Kind.RELEASE_OVERLAPS: lambda plans, *_: ReleaseOverlaps(plans.now),
        Kind.ADMIT: lambda plans, _, pick: Admit(pick.of([500, 500, 1, 2]), plans.now),
        Kind.CLAIM: Plans.claim,
        Kind.FINISH: Plans.finish,
        Kind.GIVE_BACK: lambda plans, model, pick: plans.finish(model, pick, _GIVEN_BACK),
        Kind.CANCEL: Plans.cancel,
        Kind.EXPIRE: lambda plans, *_: Expire(plans.now),
        Kind.BEAT: Plans.beat,
        Kind.BURY: lambda plans, *_: Bury(plans.now),
        Kind.RESCUE: lambda plans, *_: Rescue(plans.now),
        Kind.REGISTER: Plans.register,
        Kind.LEAVE: Plans.leave,
        Kind.CREATE_JOB: Plans.create_job,
        Kind.EDIT_JOB: Plans.edit_job,
        Kind.CHANGE_JOB: Plans.change_job,
        Kind.PUT_LIMIT: Plans.put_limit,
        Kind.PAUSE_QUEUE: Plans.pause_queue,
        Kind.FORGET_CLOCKS: lambda plans, *_: ForgetClocks(plans.now),
    }
)
