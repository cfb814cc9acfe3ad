"""The digest that ties an approval to the bytes that will run."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785

from agenttool_otel.errors import ApprovalError

__all__ = ["args_digest"]


def args_digest(arguments: Any) -> str:
    """Return ``sha256:`` and the SHA-256 of the RFC 8785 canonical form of JSON arguments.

    Raises:
        ApprovalError: they have no canonical form: NaN, an integer beyond 2^53, a lone surrogate, a key that is no
            text, a value that is not JSON, or a nesting that is too deep (notes: security 0.15).
    """
    try:
        return "sha256:" + hashlib.sha256(rfc8785.dumps(arguments)).hexdigest()
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeError, ValueError, TypeError) as error:
        raise ApprovalError(f"the arguments have no canonical form: {type(error).__name__}") from None
