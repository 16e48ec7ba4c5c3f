"""What the operator may say about a queue."""

from typing import Annotated, Any

from pydantic import Field

from foliot.api.schemas.shape import Shape, Text
from foliot.core.errors import InvalidInput
from foliot.core.limits import check_concurrency_limit
from foliot.store.enqueuing import Absent


class QueueBody(Shape):
    """Null, which takes the limit away, is not the same as nothing."""

    concurrency_limit: Any = Absent.ABSENT

    def limit(self) -> int | None:
        limit = self.concurrency_limit
        if limit is Absent.ABSENT:
            raise InvalidInput(
                "is missing",
                field="concurrency_limit",
                hint="say how many may run at once, or null for no limit",
            )
        if limit is not None and type(limit) is not int:
            raise InvalidInput(
                "is not a whole number",
                field="concurrency_limit",
                hint="use 1 or more, or null for no limit",
            )
        check_concurrency_limit(limit, field="concurrency_limit")
        return limit


class QueueNoteBody(Shape):
    note: Annotated[Text, Field(max_length=1000)] | None = None
    idempotency_key: Text | None = None
