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
    if doubtful:
        sentence = _sentence(tool, doubtful)
        return f"{sentence} Reject it unless you know that this is meant."
    targets = list(_targets(facts, shown))
    if targets:
        return _sentence(tool, targets)
    return ""


def _sentence(tool: str, clauses: list[str]) -> str:
    stated = clauses[:_MAX_VALUES]
    more = len(clauses) - len(stated)
    if more:
        stated.append(f"and {more} more")
    text = "; ".join(stated)
    return f"{tool}: {text}."


def user_words(texts: Sequence[str], redactor: Redactor) -> str:
    """Return what the user wrote last, without secrets; of a long text the beginning.

    Args:
        texts: what the user wrote, the latest last.
        redactor: takes secrets out.
    """
    if not texts:
        return ""
    # cut behind the redactor: half a token is none that it would know
    redacted = redactor.redact_text(texts[-1])
    text = str(redacted.value)
    return _beginning(text.strip(), _MAX_USER_CHARS)


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
    roles = _roles_by_argument(facts)
    if not facts["traced"]:
        return {}
    if not any(ArgumentRole.TARGET in below for below in roles.values()):
        return {}
    matcher: dict[str, dict[str, Any]] = {}
    has_content = False
    for name, value in arguments.items():
        if roles.get(name) == {ArgumentRole.CONTENT}:
            matcher[name] = {"any": True}
            has_content = True
            continue
        # a part of it is hidden: "[redacted:secret]" would be what has to be equal
        if shown.get(name, _ABSENT) != value:
            return {}
        matcher[name] = {"equals": value}
    return matcher if has_content else {}


def _roles_by_argument(facts: Facts) -> dict[str, set[str]]:
    roles: dict[str, set[str]] = {}
    for pointer, fact in facts["provenance"].items():
        name = _argument(pointer)
        roles.setdefault(name, set())
        roles[name].add(fact["role"])
    return roles


def _doubtful(facts: Facts, shown: Mapping[str, Any]) -> Iterator[str]:
    for origin in origins_of(facts):
        yield _clause(origin.argument, shown, origin.sentence, origin.seen_in)


def _targets(facts: Facts, shown: Mapping[str, Any]) -> Iterator[str]:
    for pointer, fact in facts["provenance"].items():
        if fact["role"] != ArgumentRole.TARGET:
            continue
        seen_in = ", ".join(fact["seen_in"])
        yield _clause(pointer, shown, source_of(fact), seen_in)


def _clause(pointer: str, shown: Mapping[str, Any], source: str, seen_in: str) -> str:
    name = _argument(pointer) or "input"
    value = _value_at(pointer, shown)
    text = "a value"
    if value is not _ABSENT:
        spelt = json.dumps(value, ensure_ascii=False)
        text = _beginning(spelt, _MAX_VALUE_CHARS)
    clause = f"{name} is {text}, which {source}"
    if not seen_in:
        return clause
    return f"{clause} ({seen_in})"


def _argument(pointer: str) -> str:
    """Return the name of the argument that a pointer leads into."""
    if "/" not in pointer:
        return ""
    tokens = pointer.split("/")
    return unescape_token(tokens[1])


def _value_at(pointer: str, shown: Any) -> Any:
    tokens = pointer.split("/")[1:]
    # {"eve@example.org": true}: the empty key below a value stands for its key
    key = ""
    if len(tokens) > 1 and tokens[-1] == "":
        key = unescape_token(tokens[-2])
        tokens = tokens[:-2]
    for token in tokens:
        shown = _member(shown, unescape_token(token))
    if not key:
        return shown
    return key if _member(shown, key) is not _ABSENT else _ABSENT


def _member(value: Any, token: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(token, _ABSENT)
    if not isinstance(value, list) or not token.isdecimal():
        return _ABSENT
    index = int(token)
    return value[index] if index < len(value) else _ABSENT


def _beginning(text: str, most: int) -> str:
    """Return a text, or of a longer one the beginning, and how much is left out."""
    beyond = len(text) - most
    if beyond <= 0:
        return text
    kept = text[:most]
    return f"{kept} ... ({beyond} more characters)"
