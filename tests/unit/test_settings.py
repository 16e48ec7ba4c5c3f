"""Settings: where a value comes from, and how a wrong one is told."""

from pathlib import Path

import pytest

from foliot.settings import (
    SECRETS,
    Settings,
    SettingsInvalid,
    file_variable,
    load_settings,
    variable,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*map(variable, Settings.model_fields), *map(file_variable, SECRETS)]:
        monkeypatch.delenv(name, raising=False)


def refusals(**options: object) -> list[str]:
    with pytest.raises(SettingsInvalid) as refused:
        load_settings(options)
    return [str(problem) for problem in refused.value.problems]


def test_without_any_word_from_outside_the_defaults_hold() -> None:
    settings = load_settings({})
    assert (settings.host, settings.port, settings.log_level) == ("127.0.0.1", 8080, "INFO")
    assert settings.data_dir == Path(".foliot")
    assert (settings.database_url, settings.database_pooler) == (None, "none")


def test_an_option_wins_over_a_variable_and_a_variable_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FOLIOT_PORT", "9000")
    assert load_settings({"port": None}).port == 9000
    assert load_settings({"port": 9001}).port == 9001


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_PORT", "")
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "")
    settings = load_settings({})
    assert settings.port == 8080
    assert settings.database_url is None


def test_an_empty_option_counts_as_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATA_DIR", "/elsewhere")
    assert load_settings({"data_dir": ""}).data_dir == Path("/elsewhere")


def test_several_names_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_QUEUES", " mail , default,mail,")
    monkeypatch.setenv("FOLIOT_LABELS", "gpu")
    settings = load_settings({})
    assert (settings.queues, settings.labels) == (("mail", "default"), ("gpu",))
    assert load_settings({"queues": "*"}).queues == ("*",)
    monkeypatch.setenv("FOLIOT_QUEUES", " , ")
    (refusal,) = refusals()
    assert "is not names of queues, separated by commas" in refusal


@pytest.mark.parametrize("key", ["too short", "x" * 15, "ключ" * 8, "with space " * 3])
def test_a_key_that_is_no_key_is_refused_unseen(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("FOLIOT_API_KEY", key)
    (refusal,) = refusals()
    assert refusal.startswith("FOLIOT_API_KEY: the value is not a key of 16 or more letters")
    assert key not in refusal


@pytest.mark.parametrize(
    "keys",
    [
        f"k1:{'A' * 43}=",
        f"k1:{'-_' * 21}A",
        f" k1:{'A' * 43}=, k2:{'B' * 43}\nthe.third-1:{'C' * 43} ",
    ],
)
def test_keys_of_secrets_have_ids(monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    monkeypatch.setenv("FOLIOT_SECRET_KEYS", keys)
    given = load_settings({}).secret_keys
    assert given is not None
    assert given.get_secret_value() == keys
    assert "AAA" not in repr(given)


@pytest.mark.parametrize(
    "keys",
    [
        "A" * 43,
        f"k1:{'A' * 42}",
        f"k1:{'A' * 44}",
        f"k1:{'A' * 42}!",
        f"k 1:{'A' * 43}",
        f":{'A' * 43}",
        f"k1:{'A' * 43},k1:{'B' * 43}",
        f"k1:{'A' * 43},AAAA",
    ],
)
def test_keys_of_secrets_that_are_none_are_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    monkeypatch.setenv("FOLIOT_SECRET_KEYS", keys)
    (refusal,) = refusals()
    assert refusal.startswith("FOLIOT_SECRET_KEYS: the value is not one or more of id:key")
    assert "openssl rand -base64 32" in refusal
    assert "AAA" not in refusal


def test_keys_of_secrets_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"k2:{'B' * 43}=\nk1:{'A' * 43}=\n")
    monkeypatch.setenv("FOLIOT_SECRET_KEYS_FILE", str(tmp_path / "keys"))
    given = load_settings({}).secret_keys
    assert given is not None
    assert given.get_secret_value().startswith("k2:")


def test_a_level_is_taken_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_LOG_LEVEL", "debug")
    assert load_settings({}).log_level == "DEBUG"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "FOLIOT_PORT",
            "80a",
            (
                'FOLIOT_PORT: "80a" is not a whole number from 0 to 65535, 0 for a free one'
                " (try FOLIOT_PORT=8080)"
            ),
        ),
        (
            "FOLIOT_PORT",
            "65536",
            (
                'FOLIOT_PORT: "65536" is not a whole number from 0 to 65535, 0 for a free one'
                " (try FOLIOT_PORT=8080)"
            ),
        ),
        (
            "FOLIOT_LOG_LEVEL",
            "loud",
            (
                'FOLIOT_LOG_LEVEL: "LOUD" is not one of DEBUG, INFO, WARNING, ERROR'
                " (try FOLIOT_LOG_LEVEL=INFO)"
            ),
        ),
        (
            "FOLIOT_DATABASE_POOLER",
            "statement",
            (
                'FOLIOT_DATABASE_POOLER: "statement" is not a way to the database: none (straight,'
                " or through a pooler in session mode) or transaction (through a pooler in"
                " transaction mode) (try FOLIOT_DATABASE_POOLER=transaction)"
            ),
        ),
        (
            "FOLIOT_PROT",
            "1",
            "FOLIOT_PROT: there is no such setting (did you mean FOLIOT_PORT?)",
        ),
        (
            "foliot_prot",
            "1",
            "foliot_prot: there is no such setting (did you mean FOLIOT_PORT?)",
        ),
        (
            "FOLIOT_CHILD",
            "1",
            (
                "FOLIOT_CHILD: there is no such setting (known are"
                f" {', '.join(map(variable, Settings.model_fields))},"
                f" {', '.join(map(file_variable, sorted(SECRETS)))})"
            ),
        ),
    ],
)
def test_a_wrong_variable_is_named_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, key: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(key, value)
    assert refusals() == [expected]


def test_a_wrong_option_is_named_as_it_was_written() -> None:
    (problem,) = refusals(host="here or there")
    assert problem.startswith('--host: "here or there" is not an address or a name')
    assert problem.endswith("(try --host 127.0.0.1)")
    assert load_settings({"host": "::"}).host == "::"


def test_all_problems_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_PORT", "x")
    monkeypatch.setenv("FOLIOT_LOG_LEVEL", "x")
    monkeypatch.setenv("FOLIOT_DATABASE_ULR", "x")
    keys = [problem.split(":")[0] for problem in refusals()]
    assert keys == ["FOLIOT_DATABASE_ULR", "FOLIOT_PORT", "FOLIOT_LOG_LEVEL"]


def test_the_suites_own_variables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_TEST_DATABASE_URL", "postgresql://elsewhere/test")
    assert load_settings({}).database_url is None


def test_a_malformed_database_url_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "mysql://me:hunter2@host/db")
    (problem,) = refusals()
    assert "hunter2" not in problem
    assert "try FOLIOT_DATABASE_URL=postgresql://" in problem


def test_the_database_url_does_not_show_when_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "postgresql://me:hunter2@host/db")
    assert "hunter2" not in repr(load_settings({}))


def test_a_secret_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://me:hunter2@host/db\n")
    monkeypatch.setenv("FOLIOT_DATABASE_URL_FILE", str(secret))
    url = load_settings({}).database_url
    assert url is not None
    assert url.get_secret_value() == "postgresql://me:hunter2@host/db"


def test_a_secret_given_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://a/b")
    monkeypatch.setenv("FOLIOT_DATABASE_URL_FILE", str(secret))
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "postgresql://c/d")
    assert refusals() == [
        "FOLIOT_DATABASE_URL_FILE: FOLIOT_DATABASE_URL is set too (keep one of the two)"
    ]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_secret_file_that_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    secret = tmp_path / "url"
    if content is not None:
        secret.write_bytes(content)
    monkeypatch.setenv("FOLIOT_DATABASE_URL_FILE", str(secret))
    assert refusals() == [
        f"FOLIOT_DATABASE_URL_FILE: cannot read {secret} (name a readable text file)"
    ]


def test_only_secrets_come_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOLIOT_PORT_FILE", str(tmp_path / "port"))
    assert refusals() == ["FOLIOT_PORT_FILE: there is no such setting (did you mean FOLIOT_PORT?)"]


def test_no_env_file_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FOLIOT_PORT=9999\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings({}).port == 8080


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_reference_has_every_setting_with_its_default(name: str) -> None:
    (line,) = (line for line in PAGE.read_text().splitlines() if f"| `{variable(name)}` |" in line)
    default = Settings.model_fields[name].default
    shown = ",".join(default) if isinstance(default, tuple) else default
    assert line.split(" | ")[1] == ("none" if shown in (None, "") else f"`{shown}`")
