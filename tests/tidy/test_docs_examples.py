"""What the reference says of an expression is what the code says."""

import re
from pathlib import Path

import pytest

from foliot.core.cron.expression import parse
from foliot.core.cron.words import describe

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schedules.md"
ROWS = re.findall(r"^\| `([^`]+)` \| ([\w/]+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)


def test_the_page_has_examples() -> None:
    assert len(ROWS) >= 15


@pytest.mark.parametrize(("expression", "timezone", "meaning"), ROWS)
def test_an_expression_means_what_the_page_says(
    expression: str, timezone: str, meaning: str
) -> None:
    assert describe(parse(expression), timezone) == meaning
