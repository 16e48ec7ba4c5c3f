"""What may be said when a signing key is replaced."""

from typing import Annotated, Final

from pydantic import Field

from foliot.api.schemas.shape import Shape, Text
from foliot.store.signing_keys import GRACE_SECONDS

GRACE_SECONDS_MAX: Final = 7 * 86_400.0


class RotateBody(Shape):
    """How long the keys before it still sign."""

    grace_seconds: Annotated[float, Field(ge=0, le=GRACE_SECONDS_MAX)] = GRACE_SECONDS
    idempotency_key: Text | None = None
