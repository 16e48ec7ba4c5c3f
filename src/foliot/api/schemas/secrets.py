"""Secrets as they are written in requests. What is refused is never repeated."""

from typing import Annotated

from pydantic import Field

from foliot.api.schemas.shape import Shape, Text

Value = Annotated[Text, Field(min_length=1)]


class SecretBody(Shape):
    name: Text
    value: Value
    idempotency_key: Text | None = None


class SecretValueBody(Shape):
    """For the secret that the address names; `name`, if it is given, is the same."""

    name: Text | None = None
    value: Value
