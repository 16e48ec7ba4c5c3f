"""The history of a schema as files: what is pending, and what may not be continued."""

from pathlib import Path

import pytest

from foliot.store.errors import InvalidMigrations, MigrationChanged, SchemaNewer
from foliot.store.migration_files import (
    AppliedMigration,
    Migration,
    packaged_migrations,
    pending,
    read_migrations,
)

ONE, TWO, THREE = (Migration(number, f"step_{number}", f"select {number}") for number in (1, 2, 3))


def applied(*migrations: Migration) -> list[AppliedMigration]:
    return [AppliedMigration(entry.version, entry.name, entry.checksum) for entry in migrations]


def write(folder: Path, **scripts: str) -> Path:
    for name, script in scripts.items():
        folder.joinpath(f"{name.removeprefix('m')}.sql").write_bytes(script.encode())
    return folder


def test_what_was_not_applied_is_pending_in_order() -> None:
    assert pending((ONE, TWO, THREE), applied(ONE)) == (TWO, THREE)
    assert pending((ONE, TWO), applied(ONE, TWO)) == ()
    assert pending((ONE, TWO), []) == (ONE, TWO)


def test_a_file_changed_after_it_was_applied_is_refused_by_name() -> None:
    changed = Migration(1, ONE.name, "select 'something else'")
    with pytest.raises(MigrationChanged, match=r"0001_step_1\.sql was changed"):
        pending((changed, TWO), applied(ONE))


def test_a_database_newer_than_the_code_is_refused() -> None:
    with pytest.raises(SchemaNewer, match="has migration 3, this Foliot knows 2"):
        pending((ONE, TWO), applied(ONE, TWO, THREE))


def test_a_hole_in_what_was_applied_is_refused() -> None:
    with pytest.raises(InvalidMigrations, match=r"0002_step_2\.sql was never applied"):
        pending((ONE, TWO, THREE), applied(ONE, THREE))


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = write(tmp_path, m0002_second="select 2;\n", m0001_first="select 1;\n")
    (folder / "README.md").write_text("not a migration")
    assert [entry.file for entry in read_migrations(folder)] == [
        "0001_first.sql",
        "0002_second.sql",
    ]


def test_line_ends_do_not_change_a_checksum(tmp_path: Path) -> None:
    (tmp_path / "unix").mkdir()
    (tmp_path / "windows").mkdir()
    write(tmp_path / "unix", m0001_first="select 1;\nselect 2;\n")
    write(tmp_path / "windows", m0001_first="select 1;\r\nselect 2;\r\n")
    (unix,) = read_migrations(tmp_path / "unix")
    (windows,) = read_migrations(tmp_path / "windows")
    assert unix.checksum == windows.checksum


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["0001_a", "0003_c"], "0003_c.sql should have the number 0002"),
        (["0002_b"], "0002_b.sql should have the number 0001"),
        (["0001_a", "0001_b"], "0001_b.sql should have the number 0002"),
        (["1_a"], "1_a.sql is not named like"),
        (["0001-a"], "0001-a.sql is not named like"),
        (["0001_A"], "0001_A.sql is not named like"),
    ],
)
def test_a_gap_a_number_used_twice_or_a_strange_name_is_refused(
    tmp_path: Path, names: list[str], reason: str
) -> None:
    for name in names:
        (tmp_path / f"{name}.sql").write_text("select 1")
    with pytest.raises(InvalidMigrations, match=reason):
        read_migrations(tmp_path)


def test_the_packaged_migrations_are_in_order() -> None:
    assert packaged_migrations()[0].file == "0001_schema_migrations.sql"
