"""The promise of `to_storable`, asked of the one who has to keep it."""

import json

from foliot.core.storable import to_storable
from foliot.store.database import Database
from foliot.testing.database import sql

HARD = [
    None,
    "a\0b",
    "\ud800",
    {"\0": 1},
    float("nan"),
    2**63,
    -(2**63),
    10**400,
    1e18,
    5e-324,
    "\uffff\ufffe\U0010ffff\x01\x1f\x7f\\u0000\\",
    {"": {"": [[], {}]}},
    b"\xff",
    object(),
    "x" * 10_000_000,
    {"😀" * 1000: "\0"},
    {"k\ufffd\u2028": ["\\" * 3000]},
    [[[[[[1]]]]]] * 1000,
]


async def test_whatever_becomes_of_a_value_the_database_takes_it(database: Database) -> None:
    texts = [to_storable(value, room).text for value in HARD for room in (10, 2000, 262_144)]
    rows = await database.fetch(sql("select t::jsonb as kept from unnest($1::text[]) t"), texts)
    assert [row["kept"] for row in rows] == [json.loads(text) for text in texts]
    # Written out in full, and so read as an integer, but the same number.
    assert float(await database.fetch_value(sql("select '1e308'::jsonb"))) == 1e308
