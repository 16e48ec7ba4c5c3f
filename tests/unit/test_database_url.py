"""An address is refused before it can be misread, and never shows its password."""

from pathlib import Path

import pytest

from foliot.store.errors import InvalidDatabaseUrl
from foliot.store.url import check_url, without_password


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://foliot:secret@db.example:5432/foliot",
        "postgres://foliot@db/foliot",
        "postgresql://foliot:secret@/foliot?host=/run/postgresql&port=5433",
        "postgresql://foliot:s%40cr%2Fet@a:5432,b:5433/foliot?target_session_attrs=read-write",
        "postgresql://foliot:secret@[::1]:5432/foliot?sslmode=verify-full",
        "postgresql:///foliot",
    ],
)
def test_a_usable_address_is_accepted(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "has no scheme"),
        ("localhost/foliot", "has no scheme"),
        ("mysql://foliot:hunter2@db/foliot", "begins with mysql:"),
        ("postgresql+asyncpg://foliot:hunter2@db/foliot", "begins with postgresql+asyncpg:"),
        ("postgresql://foliot:hun ter2@db/foliot", "contains a space"),
        ("postgresql://foliot:hunter2@db/foliot\n", "contains a space or a line break"),
        ("postgresql://foliot:hun@ter2@db/foliot", "special character"),
        ("postgresql://foliot:12/hunter2@db/foliot", "special character"),
        ("postgresql://foliot:12#hunter2@db/foliot", "special character"),
        ("postgresql://foliot:hunter2/x", "has a port"),
        ("postgresql://foliot:hunter2@db:70000/foliot", "has a port"),
        ("postgresql://foliot:12?hunter2@db/foliot", "has options"),
        ("postgresql://[foliot:hunter2@db/foliot", "is not a URL"),
    ],
)
def test_a_malformed_address_is_named_with_the_fix_and_never_shown(url: str, reason: str) -> None:
    with pytest.raises(InvalidDatabaseUrl) as caught:
        check_url(url)
    said = str(caught.value)
    assert said.startswith("FOLIOT_DATABASE_URL: ")
    assert reason in said
    assert "(" in said
    for secret in ("hunter2", "ter2"):
        assert secret not in said


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://foliot:secret@db:5432/foliot", "postgresql://foliot@db:5432/foliot"),
        ("postgresql://foliot@db/foliot", "postgresql://foliot@db/foliot"),
        ("postgresql://db/foliot", "postgresql://db/foliot"),
        (
            "postgresql://foliot:secret@/foliot?host=/run/pg&password=secret&port=5433",
            "postgresql://foliot@/foliot?host=/run/pg&port=5433",
        ),
        ("postgresql://a:b@x/y?sslpassword=secret", "postgresql://a@x/y"),
        ("postgresql://[::1", "(malformed)"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize("option", ["sslrootcert", "sslcert", "sslkey", "sslcrl"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, option: str) -> None:
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.touch()
    check_url(f"postgresql://db/foliot?{option}={there}")
    for path in (missing, tmp_path):
        with pytest.raises(InvalidDatabaseUrl, match=f"{option} names {path}, which cannot be"):
            check_url(f"postgresql://db/foliot?{option}={path}")
