"""The other ways to write a job, brought into the one shape that everything else knows.

Names that other schedulers have for the same thing are moved to where the contract has them. No
alias goes past this module. A value that is given under two names must be the same under both;
a name that nobody knows is left where it is, to be refused with the rest.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from foliot.core.errors import InvalidInput
from foliot.core.retry_policy import ATTEMPTS_MAX, DELAY_SECONDS_MAX

Document = dict[str, Any]

# At the top level of a job: where it belongs.
SCHEDULE_NAMES: Final[Mapping[str, str]] = {
    "cron_expression": "cron_expression",
    "cron": "cron_expression",
    "schedule_pattern": "cron_expression",
    "timezone": "timezone",
    "run_at": "run_at",
    "scheduled_at": "run_at",
    "schedule_time": "run_at",
    "scheduled_time": "run_at",
    "delay_seconds": "delay_seconds",
    "interval_seconds": "interval_seconds",
}
SCHEDULE_WORDS: Final[Mapping[str, str]] = {
    "one_time": "ONE_TIME",
    "recurring": "RECURRING",
    "cron": "CRON",
    "delayed": "DELAYED",
}
# Which field makes which schedule, where no type is given.
_TYPE_BY_FIELD: Final[Mapping[str, str]] = {
    "cron_expression": "CRON",
    "interval_seconds": "INTERVAL",
    "run_at": "ONE_TIME",
    "delay_seconds": "DELAYED",
    "after": "AFTER",
}
_TYPE_BY_TARGET_FIELD: Final = {"url": "HTTP", "name": "HANDLER", "argv": "COMMAND"}
_RETRY_CONFIG: Final = {
    "max_attempts": "max_attempts",
    "backoff_seconds": "initial_delay_seconds",
    "backoff_multiplier": "multiplier",
}
# A retry_config names no limit, and its delays are those of people who wait for minutes.
RETRY_CONFIG_DELAY_SECONDS_MAX: Final = 3600
_EXECUTION: Final = frozenset({"callback_url", "method", "headers", "payload", "timeout_seconds"})
_ENDPOINT: Final = frozenset({"endpoint", "method", "headers", "body"})
SECTIONS: Final = ("schedule", "target", "retry_policy")
NAMES: Final = frozenset(
    {
        *SCHEDULE_NAMES,
        "type",
        "job_type",
        "execution_params",
        "execution",
        "max_attempts",
        "max_retries",
        "retry_backoff",
        "retry_config",
    }
)


def expand_job(given: Mapping[str, Any]) -> Document:
    """A whole job, with the type of its schedule and its target said."""
    document = expand_names(given)
    _name_schedule_type(document)
    _move_endpoint(document)
    _name_target(document)
    return document


def expand_names(given: Mapping[str, Any]) -> Document:
    """Parts of a job, each under its own name; what is not there is not guessed."""
    document = {name: value for name, value in given.items() if value is not None}
    for section in SECTIONS:
        if isinstance(document.get(section), dict):
            document[section] = dict(document[section])
    _move_schedule(document)
    _move(document, "execution_params", "", "payload")
    _move_execution(document)
    _move_retries(document)
    unset = {name: None for name, value in given.items() if value is None and name not in NAMES}
    return unset | document


def expand_schedule(given: object) -> object:
    """A schedule by itself: a cron expression, or an object without its type."""
    if isinstance(given, str):
        given = {"cron_expression": given}
    if isinstance(given, dict):
        document: Document = {"schedule": dict(given)}
        _name_schedule_type(document)
        return document["schedule"]
    return given


def _move_schedule(document: Document) -> None:
    if isinstance(document.get("schedule"), str):
        document["schedule"] = {"cron_expression": document["schedule"]}
    for name, field in SCHEDULE_NAMES.items():
        _move(document, name, "schedule", field)
    schedule = document.get("schedule")
    if isinstance(schedule, dict) and "type" in schedule:
        schedule["type"] = _schedule_word(schedule["type"])
    for name in ("job_type", "type"):
        word = document.get(name)
        if word is not None and not isinstance(word, str):
            raise InvalidInput("is not a word", field=name, hint="write it as text")
        # Any other job_type is the name of a handler.
        if isinstance(word, str) and (name == "type" or word.lower() in SCHEDULE_WORDS):
            document[name] = _schedule_word(word)
            _move(document, name, "schedule", "type")


def _schedule_word(word: object) -> object:
    return SCHEDULE_WORDS.get(word.lower(), word.upper()) if isinstance(word, str) else word


def _name_schedule_type(document: Document) -> None:
    if document.get("schedule") is None:
        document["schedule"] = {}
    schedule = document["schedule"]
    if not isinstance(schedule, dict):
        return
    kind = _schedule_word(schedule.get("type"))
    if kind == "RECURRING":
        kind = "CRON" if schedule.get("interval_seconds") is None else "INTERVAL"
    if kind is None:
        found = (_TYPE_BY_FIELD[name] for name in _TYPE_BY_FIELD if schedule.get(name) is not None)
        kind = next(found, "MANUAL")
    schedule["type"] = kind


def _move_execution(document: Document) -> None:
    """`execution`: an HTTP target, with its payload and timeout."""
    execution = _object(document, "execution", _EXECUTION)
    if execution is None:
        return
    del document["execution"]
    _check_names("execution", execution, _EXECUTION)
    if "callback_url" not in execution:
        raise InvalidInput("is missing", field="execution.callback_url", hint="name the address")
    _put(document, "execution", "target", "type", "HTTP")
    _put(document, "execution.callback_url", "target", "url", execution["callback_url"])
    for name in ("method", "headers"):
        if name in execution:
            _put(document, f"execution.{name}", "target", name, execution[name])
    for name in ("payload", "timeout_seconds"):
        if name in execution:
            _put(document, f"execution.{name}", "", name, execution[name])


def _move_endpoint(document: Document) -> None:
    """A payload that is nothing but a call: an HTTP target with that body."""
    payload = document.get("payload")
    if "target" in document or not isinstance(payload, dict):
        return
    if "endpoint" not in payload or not payload.keys() <= _ENDPOINT:
        return
    document["payload"] = payload.get("body")
    document["target"] = {"type": "HTTP", "url": payload["endpoint"]} | {
        name: payload[name] for name in ("method", "headers") if name in payload
    }


def _move_retries(document: Document) -> None:
    _move(document, "max_attempts", "retry_policy", "max_attempts")
    _move(document, "retry_backoff", "retry_policy", "backoff")
    _move_retry_config(document)
    if "max_retries" in document:
        retries = document.pop("max_retries")
        attempts = _attempts(retries, "max_retries")
        _put(document, "max_retries", "retry_policy", "max_attempts", attempts)
    policy = document.get("retry_policy")
    if not isinstance(policy, dict):
        return
    if "max_retries" in policy:
        attempts = _attempts(policy.pop("max_retries"), "retry_policy.max_retries")
        _put(document, "retry_policy.max_retries", "retry_policy", "max_attempts", attempts)
    for name, field in (
        ("initial_delay_ms", "initial_delay_seconds"),
        ("max_delay_ms", "max_delay_seconds"),
    ):
        if name in policy:
            place = f"retry_policy.{name}"
            _put(document, place, "retry_policy", field, _seconds(policy.pop(name), place))


def _move_retry_config(document: Document) -> None:
    config = _object(document, "retry_config", _RETRY_CONFIG)
    if config is None:
        return
    del document["retry_config"]
    _check_names("retry_config", config, frozenset(_RETRY_CONFIG))
    for name, field in _RETRY_CONFIG.items():
        if name in config:
            _put(document, f"retry_config.{name}", "retry_policy", field, config[name])
    first = _number(config.get("backoff_seconds", 0), "retry_config.backoff_seconds")
    longest = max(RETRY_CONFIG_DELAY_SECONDS_MAX, first)
    _put(document, "retry_config", "retry_policy", "max_delay_seconds", longest)


def _name_target(document: Document) -> None:
    """Without a target, a handler: named by `job_type`, the payload's `action`, or as the job."""
    target, word = document.get("target"), document.pop("job_type", None)
    if isinstance(target, dict):
        if word is not None:
            raise InvalidInput(
                "names a handler, and the job has a target",
                field="job_type",
                hint="leave one of the two out",
            )
        kinds = (kind for name, kind in _TYPE_BY_TARGET_FIELD.items() if name in target)
        target["type"] = target.get("type") or next(kinds, None)
    if target is not None:
        return
    payload = document.get("payload")
    action = payload.get("action") if isinstance(payload, dict) else None
    name = word or action or document.get("name")
    if name is None:
        raise InvalidInput(
            "is missing", field="target", hint="say what to run: a target, or a job_type"
        )
    document["target"] = {"type": "HANDLER", "name": name}


def _move(document: Document, name: str, section: str, field: str) -> None:
    if document.get(name) is not None:
        _put(document, name, section, field, document.pop(name))


def _put(document: Document, name: str, section: str, field: str, value: object) -> None:
    """Set a field unless it is set already: then it must be to the same."""
    place = document.setdefault(section, {}) if section else document
    if not isinstance(place, dict):
        return  # not an object, and refused as such
    if place.get(field) not in (None, value):
        whole = f"{section}.{field}" if section else field
        raise InvalidInput(f"{whole} is given too, with another value", field=name, hint="give one")
    place[field] = value


def _object(document: Document, name: str, known: Iterable[str]) -> Document | None:
    """What is given under the name, which must be an object; None if nothing is."""
    given = document.get(name)
    if given is not None and not isinstance(given, dict):
        hint = f"write an object with {', '.join(sorted(known))}"
        raise InvalidInput("is not an object", field=name, hint=hint)
    return given


def _check_names(place: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    for name in given:
        if name not in known:
            raise InvalidInput(
                "there is no such field",
                field=f"{place}.{name}",
                hint=f"known are {', '.join(sorted(known))}",
            )


def _attempts(retries: object, place: str) -> int:
    if type(retries) is not int or not 0 <= retries < ATTEMPTS_MAX:
        hint = f"use 0 to {ATTEMPTS_MAX - 1}; 0 means no retry"
        raise InvalidInput("is not a number of retries", field=place, hint=hint)
    return retries + 1


def _seconds(milliseconds: object, place: str) -> float:
    """Held to its bounds before it is divided: a whole number may be larger than any float."""
    number, high = _number(milliseconds, place), DELAY_SECONDS_MAX * 1000
    if not 0 <= number <= high:
        raise InvalidInput(
            "is not a delay that can be kept", field=place, hint=f"use 0 to {high:.0f}"
        )
    return number / 1000


def _number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput("is not a number", field=place)
    return value
