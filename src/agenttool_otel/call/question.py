"""What a person is asked, in one sentence: which values are at stake, where they came from, and
what the user wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agenttool_otel.facts.origins import origins_of, source_of
from agenttool_otel.facts.types import Facts
from agenttool_otel.names import ArgumentRole
from agenttool_otel.redaction import Redactor
from agenttool_otel.values.pointers import unescape_token

_MAX_VALUES: Final = 4
_MAX_VALUE_CHARS: Final = 200
_MAX_USER_CHARS: Final = 1_000
_ABSENT: Final[Any] = object()


def question_of(tool: str, facts: Facts, shown: Mapping[str, Any]) -> str:
    """Return the question about a call: each value at stake with its source.

    Values that nobody vouches for come first; without any, the targets do.

    Args:
        tool: the tool's name.
        facts: the facts of the call.
        shown: its arguments, without secrets.
    """
    doubtful = list(_doubtful(facts, shown))
    stated = doubtful or list(_targets(facts, shown))
    if not stated:
        return ""
    more = len(stated) - _MAX_VALUES
    rest = f"; and {more} more" if more > 0 else ""
    sentence = f"{tool}: {'; '.join(stated[:_MAX_VALUES])}{rest}."
    return f"{sentence} Reject it unless you know that this is meant." if doubtful else sentence


def user_words(texts: Sequence[str], redactor: Redactor) -> str:
    """Return what the user wrote last, without secrets; of a long text the beginning.

    Args:
        texts: what the user wrote, the latest last.
        redactor: takes secrets out.
    """
    if not texts:
        return ""
    # cut behind the redactor: half a token is none that it would know
    text = str(redactor.redact_text(texts[-1]).value).strip()
    beyond = len(text) - _MAX_USER_CHARS
    if beyond <= 0:
        return text
    return f"{text[:_MAX_USER_CHARS]} ... ({beyond} more characters)"


def same_target(
    facts: Facts, arguments: Mapping[str, Any], shown: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return what a later call has to share so that it reaches the same: all but mere content.

    Empty where the call has no target or no content, and where a secret decides whom it reaches.

    Args:
        facts: the facts of the call.
        arguments: its arguments.
        shown: the same, without secrets.
    """
    roles = {pointer: fact["role"] for pointer, fact in facts["provenance"].items()}
    if not facts["traced"] or ArgumentRole.TARGET not in roles.values():
        return {}
    matcher: dict[str, dict[str, Any]] = {}
    for name, value in arguments.items():
        below = [role for pointer, role in roles.items() if _argument(pointer) == name]
        if below and all(role == ArgumentRole.CONTENT for role in below):
            matcher[name] = {"any": True}
        elif shown.get(name, _ABSENT) != value:
            return {}
        else:
            matcher[name] = {"equals": value}
    return matcher if {"any": True} in matcher.values() else {}


def _doubtful(facts: Facts, shown: Mapping[str, Any]) -> Iterator[str]:
    for origin in origins_of(facts):
        yield _clause(origin.argument, shown, origin.sentence, origin.seen_in)


def _targets(facts: Facts, shown: Mapping[str, Any]) -> Iterator[str]:
    for pointer, fact in facts["provenance"].items():
        if fact["role"] == ArgumentRole.TARGET:
            yield _clause(pointer, shown, source_of(fact), ", ".join(fact["seen_in"]))


def _clause(pointer: str, shown: Mapping[str, Any], source: str, seen_in: str) -> str:
    value = _value_at(pointer, shown)
    text = "a value" if value is _ABSENT else _short(value)
    place = f" ({seen_in})" if seen_in else ""
    return f"{_argument(pointer) or 'input'} is {text}, which {source}{place}"


def _argument(pointer: str) -> str:
    """Return the name of the argument that a pointer leads into."""
    return unescape_token(pointer.split("/")[1]) if "/" in pointer else ""


def _value_at(pointer: str, shown: Any) -> Any:
    tokens = [unescape_token(token) for token in pointer.split("/")[1:]]
    # {"eve@example.org": true}: the empty key below a value stands for its key
    if len(tokens) > 1 and tokens[-1] == "":
        found = _value_at(pointer[:-1].rpartition("/")[0], shown) if len(tokens) > 2 else shown
        return tokens[-2] if isinstance(found, Mapping) and tokens[-2] in found else _ABSENT
    for token in tokens:
        if isinstance(shown, Mapping):
            shown = shown.get(token, _ABSENT)
        elif isinstance(shown, list) and token.isdecimal() and int(token) < len(shown):
            shown = shown[int(token)]
        else:
            return _ABSENT
    return shown


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    beyond = len(text) - _MAX_VALUE_CHARS
    return text if beyond <= 0 else f"{text[:_MAX_VALUE_CHARS]} ... ({beyond} more characters)"
