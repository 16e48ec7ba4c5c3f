"""A lean row is a mapping like any other."""

from chaos.lean_row import columns_of, lean


def test_a_lean_row_reads_like_a_dict() -> None:
    row = lean(columns_of(["id", "status"]), (7, "RUNNING"))
    assert dict(row) == {"id": 7, "status": "RUNNING"}
    assert row == {"id": 7, "status": "RUNNING"}
    assert row["status"] == "RUNNING"
    assert row.get("hold") is None
    assert "id" in row
    assert len(row) == 2
