"""The digest that ties an approval to the bytes that will run: the package's own, for what can be stored as JSON."""

from __future__ import annotations

import json
from typing import Any

from agenttool_otel.errors import ApprovalError
from agenttool_otel.values.canonical import digest


def args_digest(arguments: Any) -> str:
    """Return the digest of JSON arguments (``records.values.digest``)."""
    try:
        found = digest(arguments)
        if digest(json.loads(json.dumps(arguments, allow_nan=False))) == found:
            return found
    except (ValueError, TypeError, RecursionError) as error:
        raise ApprovalError(f"the arguments can't be kept as JSON: {type(error).__name__}") from None
    raise ApprovalError("the arguments can't be kept as JSON: they would come back changed")
