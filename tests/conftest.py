"""A real PostgreSQL for every test that asks for one, and no silent skip where none is allowed."""

from collections.abc import Generator

import pytest

pytest_plugins = ["foliot.testing.plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failure")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and skips are not allowed here: {report.longrepr}"
    return report
