"""Signatures of webhooks (standardwebhooks.com), and the tickets that bind an answer to a question."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.errors import ConfigurationError

MIN_SECRET_BYTES: Final = 24
"""The shortest secret that Standard Webhooks allow."""

_PREFIX: Final = "whsec_"


class BadSignature(Exception):
    """A message is not signed with the secret, or not within the last five minutes."""


class Signer:
    """Signs messages, and checks the signatures of others, with one secret.

    Args:
        secret: ``whsec_`` and at least 24 bytes in base64.

    Raises:
        ConfigurationError: the secret can't be used, or the extra ``notify`` is not installed.
    """

    def __init__(self, secret: str) -> None:
        try:
            from standardwebhooks import Webhook, WebhookVerificationError
        except ImportError:
            raise ConfigurationError(
                "signed webhooks need a package: pip install 'agenttool-otel[notify]'"
            ) from None
        self._key = _key_of(secret)
        self._webhook = Webhook(self._key)
        self._refused: Any = WebhookVerificationError

    def headers(self, message_id: str, body: bytes) -> dict[str, str]:
        """Return the headers of a message that is sent now.

        Args:
            message_id: its id; equal for what is sent again.
            body: its body, UTF-8.
        """
        now = datetime.now(UTC)
        return {
            "webhook-id": message_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._webhook.sign(message_id, now, body.decode()),
        }

    def check(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return the id of a message.

        Args:
            headers: its headers, by names in lower case.
            body: its body.

        Raises:
            BadSignature: it is not signed with the secret, or not within the last five minutes.
        """
        try:
            self._webhook.verify(body, dict(headers), json_parse=False)
        # a signature without a comma, a body that is no UTF-8, base64 that is none
        except (self._refused, ValueError, TypeError, OverflowError):
            raise BadSignature from None
        return headers["webhook-id"]

    def ticket(self, request: ApprovalRequest) -> str:
        """Return what an answer to a request has to carry: it binds it to the arguments.

        Args:
            request: the request.
        """
        text = f"ticket\n{request.request_id}\n{request.args_digest}"
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def ticket_fits(self, request: ApprovalRequest, ticket: str) -> bool:
        """Return whether a ticket is the request's.

        Args:
            request: the request.
            ticket: what came with an answer.
        """
        return hmac.compare_digest(self.ticket(request).encode(), ticket.encode("utf-8", "replace"))

    def has_key_of(self, other: Signer) -> bool:
        """Return whether both have one secret."""
        return hmac.compare_digest(self._key, other._key)


def new_secret() -> str:
    """Return a new secret."""
    import secrets

    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode("ascii")


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < MIN_SECRET_BYTES:
        raise ConfigurationError(
            f"a secret of webhooks is {_PREFIX} and at least {MIN_SECRET_BYTES} bytes in base64"
        )
    return key
