"""When two names of people or agents are one to a person who reads them, and the digest of what an
approval covers.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from agenttool_otel.errors import ApprovalError
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.unicode import has_invisible, skeleton, strip_invisible

_UNSEEN = frozenset(("Cc", "Cs"))


def has_unseen(name: str) -> bool:
    """Return whether a name has characters that show nothing, with which two names could look
    like one.
    """
    return has_invisible(name) or any(
        unicodedata.category(character) in _UNSEEN for character in name
    )


def is_same_identity(name: str, other: str) -> bool:
    """Return whether two names are those of the same person or agent: case, width, white space,
    invisible characters and look-alikes aside.
    """
    plain = _plain(name)
    plain_other = _plain(other)
    if plain == plain_other:
        return True
    # letters of another alphabet may look the same; within ASCII "user:1" and "user:l" are two
    # people
    if name.isascii() and other.isascii():
        return False
    return skeleton(plain) == skeleton(plain_other)


def _plain(text: str) -> str:
    folded = unicodedata.normalize(
        "NFKC", strip_invisible(unicodedata.normalize("NFKC", text))
    ).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c) not in _UNSEEN)


def args_digest(arguments: Any) -> str:
    """Return the digest of JSON arguments (``values.canonical.digest``), for what can be stored as
    JSON.
    """
    try:
        found = digest(arguments)
        if digest(json.loads(json.dumps(arguments, allow_nan=False))) == found:
            return found
    except (ValueError, TypeError, RecursionError) as error:
        raise ApprovalError(
            f"the arguments can't be kept as JSON: {type(error).__name__}"
        ) from None
    raise ApprovalError("the arguments can't be kept as JSON: they would come back changed")
