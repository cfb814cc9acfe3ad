"""Ids of actors, sessions and tenants as they may leave the process.

They are the host's own, and meant to be seen; but a host may use a session cookie's token as the
session's id, or put a key into an actor's name. So each is looked at for the shapes of tokens, and
what is found is replaced by its kind and a keyed digest: the same id reads the same in spans,
records and logs, and what it was can't be seen. Names, e-mail addresses and numbers stay.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from agenttool_otel.redaction.redactor import Redactor
from agenttool_otel.redaction.types import RedactionSettings
from agenttool_otel.values.canonical import digest_key
from agenttool_otel.values.unicode import escape_surrogates

_MOST_CHARS: Final = 4096
_MOST_NAMES: Final = 200
OTHER: Final = "other"
"""The label of agents beyond the bound of names, and of those whose name holds a secret."""
_names: Final[set[str]] = set()


@lru_cache(maxsize=4)
def _redactor(key: bytes) -> Redactor:
    return Redactor(
        RedactionSettings(pii=False, pseudonym_key=hashlib.sha256(b"ids\0" + key).digest())
    )


@lru_cache(maxsize=4096)
def _shown(text: str, key: bytes) -> str:
    found = _redactor(key).redact_text(escape_surrogates(text[:_MOST_CHARS])).value
    return found if type(found) is str else "[redacted:failed]"


def shown_id(text: str) -> str:
    """Return an id without what looks like a token; never raises.

    Args:
        text: id of an actor, a session or a tenant, or the name of an agent.

    Returns:
        The id, with lone surrogates escaped; what stands for a token is the same for the same
        ``AGENTTOOL_DIGEST_KEY``.
    """
    return _shown(text, digest_key())


def agent_label(name: str) -> str:
    """Return the name of an agent as a metric label: one of a bounded number of names, and none
    that holds a secret.

    Args:
        name: name of the agent; each session having one of its own is what this guards against.
    """
    if name in _names:
        return name
    if len(_names) >= _MOST_NAMES or shown_id(name) != name:
        return OTHER
    _names.add(name)
    return name
