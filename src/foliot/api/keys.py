"""What this server seals with, if it was given anything."""

from fastapi import Request

from foliot.core.errors import InvalidInput
from foliot.runtime.envelope import Keyring


def keyring_for(request: Request) -> Keyring:
    keyring: Keyring | None = request.app.state.keyring
    if keyring is None:
        raise InvalidInput(
            "this server has no key to seal with",
            field="FOLIOT_SECRET_KEYS",
            hint="the operator sets it for API and workers: k1:$(openssl rand -base64 32)",
        )
    return keyring
