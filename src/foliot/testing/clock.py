"""A clock that a test moves by hand."""


class ManualClock:
    """Sleeping takes no time and moves the clock."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
