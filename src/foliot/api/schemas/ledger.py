"""What can be asked of the ledger."""

from typing import Annotated

from pydantic import Field

from foliot.api.pagination import CURSOR_CHARS_MAX
from foliot.api.schemas.shape import Shape, Text, UtcTime, Word

Cursor = Annotated[Text, Field(max_length=CURSOR_CHARS_MAX)]


class VerifyBody(Shape):
    """A job by its name or id, or all; instants from `from` up to and without `to`."""

    job: Word | None = None
    from_: Annotated[UtcTime | None, Field(alias="from")] = None
    to: UtcTime | None = None
    cursor: Cursor | None = None
