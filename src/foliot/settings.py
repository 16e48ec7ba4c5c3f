"""What a process is told from outside: options of the command line, then `FOLIOT_*`, then defaults.

Every variable is known by name. An unknown or malformed one stops the start, and all problems are
named at once, each with its fix. A value that holds a secret may come from a file instead: name
the file in `FOLIOT_…_FILE`. An empty variable counts as unset. No file is read unasked.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

PREFIX: Final = "FOLIOT_"
KEY_CHARS_MIN: Final = 16
# The test suite's own switches: no command reads a variable that begins so.
RESERVED_FOR_TESTS: Final = "FOLIOT_TEST_"
# What a command is told about its attempt: it may start one of ours.
TOLD_TO_COMMANDS: Final = frozenset(
    {
        "FOLIOT_EXECUTION_ID",
        "FOLIOT_JOB_ID",
        "FOLIOT_JOB_NAME",
        "FOLIOT_ATTEMPT_NUMBER",
        "FOLIOT_FENCE",
        "FOLIOT_IDEMPOTENCY_KEY",
        "FOLIOT_SCHEDULED_TIME",
    }
)
SECRETS: Final = frozenset({"api_key", "database_direct_url", "database_url", "secret_keys"})
_SECRET_KEY: Final = re.compile(r"([A-Za-z0-9_.-]{1,64}):[A-Za-z0-9+/_-]{43}=?")


@dataclass(frozen=True)
class Problem:
    """One setting that cannot be used, and what to do about it. Never shows a secret's value."""

    key: str
    reason: str
    fix: str

    def __str__(self) -> str:
        return f"{self.key}: {self.reason} ({self.fix})"


class SettingsInvalid(Exception):
    """The settings as a whole cannot be used; `problems` lists every reason."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _postgresql(url: SecretStr) -> SecretStr:
    # The rest of the address is checked where it is used, by the store.
    if not url.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError
    return url


def _long_enough(key: SecretStr) -> SecretStr:
    text = key.get_secret_value()
    if len(text) < KEY_CHARS_MIN or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError
    return key


def _keys(keys: SecretStr) -> SecretStr:
    """Each of 256 bits, under an id of its own."""
    words = re.split(r"[\s,]+", keys.get_secret_value().strip())
    found = [_SECRET_KEY.fullmatch(word) for word in words]
    ids = [match[1] for match in found if match]
    if len(set(ids)) < len(words):
        raise ValueError
    return keys


def _split(value: object) -> object:
    """`mail, default` is two names."""
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class Settings(BaseSettings):
    """Descriptions complete the sentence "… is not", examples are what to write instead."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    database_url: Annotated[SecretStr, AfterValidator(_postgresql)] | None = Field(
        None,
        description="a PostgreSQL address",
        examples=["postgresql://user:password@host:5432/foliot"],
    )
    database_pooler: Literal["none", "transaction"] = Field(
        "none",
        description="a way to the database: none (straight, or through a pooler in session mode)"
        " or transaction (through a pooler in transaction mode)",
        examples=["transaction"],
    )
    database_direct_url: Annotated[SecretStr, AfterValidator(_postgresql)] | None = Field(
        None,
        description="a PostgreSQL address",
        examples=["postgresql://user:password@host:5432/foliot"],
    )
    data_dir: Path = Field(Path(".foliot"), description="a folder", examples=["./.foliot"])
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:_-]{1,255}$")] = Field(
        "127.0.0.1",
        description="an address or a name of this machine (0.0.0.0 or :: for all it has)",
        examples=["127.0.0.1"],
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8080, description="a whole number from 0 to 65535, 0 for a free one", examples=["8080"]
    )
    metrics_port: Annotated[int, Field(ge=0, le=65535)] | None = Field(
        None, description="a whole number from 0 to 65535, 0 for a free one", examples=["9100"]
    )
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper)] = (
        Field("INFO", description="one of DEBUG, INFO, WARNING, ERROR", examples=["INFO"])
    )

    api_key: Annotated[SecretStr, AfterValidator(_long_enough)] | None = Field(
        None,
        description="a key of 16 or more letters, digits and signs, without spaces",
        examples=["$(openssl rand -hex 24)"],
    )
    secret_keys: Annotated[SecretStr, AfterValidator(_keys)] | None = Field(
        None,
        description="one or more of id:key, where a key is 32 bytes in base64 and no id comes"
        " twice",
        examples=["k1:$(openssl rand -base64 32)"],
    )
    queues: Annotated[Names, Field(min_length=1)] = Field(
        ("default",),
        description="names of queues, separated by commas, * for every one",
        examples=["default,mail"],
    )
    concurrency: Annotated[int, Field(ge=1, le=100_000)] = Field(
        16, description="a whole number from 1 to 100000", examples=["16"]
    )
    poll_seconds: Annotated[float, Field(ge=0.25, le=3600)] = Field(
        1, description="a number of seconds from 0.25 to 3600", examples=["1"]
    )
    labels: Names = Field(
        (), description="names of labels, separated by commas", examples=["gpu,large"]
    )
    region: str | None = Field(None, description="the name of a region", examples=["eu"])
    worker_name: str | None = Field(None, description="a name", examples=["mail-1"])
    drain_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        30, description="a number of seconds from 0 to 86400", examples=["30"]
    )
    callbacks_per_host: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="a whole number from 1 to 100000", examples=["64"]
    )
    callback_allow: Names = Field(
        (),
        description="networks, addresses and names that callbacks may reach, separated by commas",
        examples=["10.2.0.0/16,name.internal:8080"],
    )
    commands: Names = Field(
        (),
        description="whole paths of programs, separated by commas, * for any",
        examples=["/usr/bin/backup,/opt/reports/run"],
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - no .env magic
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - ours names each file
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _SecretFiles(settings_cls)


class _SecretFiles(PydanticBaseSettingsSource):
    """`FOLIOT_DATABASE_URL_FILE=/run/secrets/url`: the value is what the file holds."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        path = os.environ.get(file_variable(field_name))
        value = _read(path) if path and field_name in SECRETS else None
        return value, field_name, False

    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields
        values = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in values.items() if value is not None}


def load_settings(options: Mapping[str, object]) -> Settings:
    """The settings in force. An option that is None or empty counts as not given."""
    given = {name: value for name, value in options.items() if value not in (None, "")}
    problems = [*_unknown(os.environ), *_files_in_doubt(os.environ)]
    try:
        settings = Settings(**given)  # type: ignore[arg-type] # pydantic checks what it is given
    except ValidationError as refused:
        problems += _refusals(refused, given)
    if problems:
        raise SettingsInvalid(tuple(problems))
    return settings


def variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def file_variable(name: str) -> str:
    return f"{variable(name)}_FILE"


def _known() -> list[str]:
    names = [variable(name) for name in Settings.model_fields]
    return names + [file_variable(name) for name in sorted(SECRETS)]


def _unknown(environ: Mapping[str, str]) -> Iterator[Problem]:
    known = _known()
    for key in sorted(environ):
        name = key.upper()
        if not name.startswith(PREFIX) or name.startswith(RESERVED_FOR_TESTS):
            continue
        if name in known or name in TOLD_TO_COMMANDS:
            continue
        endings = [word.removeprefix(PREFIX) for word in known]
        close = get_close_matches(name.removeprefix(PREFIX), endings, n=1)
        fix = f"did you mean {PREFIX}{close[0]}?" if close else f"known are {', '.join(known)}"
        yield Problem(key, "there is no such setting", fix)


def _files_in_doubt(environ: Mapping[str, str]) -> Iterator[Problem]:
    for name in sorted(SECRETS):
        key = file_variable(name)
        path = environ.get(key)
        if path and environ.get(variable(name)):
            yield Problem(key, f"{variable(name)} is set too", "keep one of the two")
        elif path and _read(path) is None:
            yield Problem(key, f"cannot read {path}", "name a readable text file")


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _refusals(refused: ValidationError, options: Mapping[str, object]) -> Iterator[Problem]:
    """One problem per field, however many members of a union refused the value."""
    for name, value in {str(error["loc"][0]): error["input"] for error in refused.errors()}.items():
        field = Settings.model_fields[name]
        key = f"--{name.replace('_', '-')}" if name in options else variable(name)
        shown = "the value" if name in SECRETS else f'"{value}"'
        example = (field.examples or [""])[0]
        separator = " " if name in options else "="
        yield Problem(key, f"{shown} is not {field.description}", f"try {key}{separator}{example}")
