"""Key-name rules on decoded structure: mappings, header pairs, name/value pairs, argument lists.

Pure functions that look at one container and return which of its items go; ``walker`` and ``text`` do
the replacing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.detectors.flags import argument_spans
from agenttool_otel.redaction.detectors.headers import header_secret
from agenttool_otel.redaction.detectors.phrases import is_word_list
from agenttool_otel.redaction.keys import (
    KeyClass,
    classify,
    is_label,
    is_service,
    kind_of_key,
    normal_name,
)
from agenttool_otel.redaction.plausibility import (
    is_filler,
    is_path,
    is_sentence,
    is_stand_in,
    is_template,
    is_word_like,
    plausible_token,
)
from agenttool_otel.redaction.types import Path
from agenttool_otel.redaction.words import reads_like_words

_NAME_KEYS: Final = (
    "name",
    "key",
    "header",
    "field",
    "param",
    "parameter",
    "variable",
    "var",
    "k",
    "id",
    "property",
)
VALUE_KEYS: Final = (
    "value",
    "val",
    "v",
    "content",
    "data",
    "default",
    "stringvalue",
    "string_value",
)
DESCRIBING_KEYS: Final = frozenset(
    (*VALUE_KEYS, "kty", "kind", "selector", "locator", "xpath", "css", "element", "target")
)
"""Keys of mappings by which one member may describe another: ``{"name": "pin", "value": 4921}``."""
_TYPES: Final = (
    "string",
    "number",
    "integer",
    "boolean",
    "object",
    "array",
    "null",
    "password",
    "text",
    "str",
    "int",
)
_LAST_WORD: Final = re.compile(r"[A-Z][a-z]+\Z")
_LISTED: Final = re.compile(r"[A-Za-z_.:/]{0,16}")
_PRIVATE_OF_JWK: Final = frozenset(("d", "p", "q", "dp", "dq", "qi", "k"))
_DATA_OF_SECRET: Final = ("data", "stringData")
_SELECTORS: Final = ("selector", "locator", "xpath", "css", "element", "target")
_TYPED: Final = ("value", "text", "input", "content")
_SECRET_FIELD: Final = re.compile(r"(?i)passw|pwd\b|\botp|cvv|cvc|secret")
_LISTING: Final = frozenset(
    (
        "name",
        "arn",
        "description",
        "createddate",
        "lastchangeddate",
        "created_at",
        "updated_at",
        "visibility",
    )
)
_SECRET_NAMES: Final = ("secret", "secrets", "privatekey", "secretkey")
_BANK_ACCOUNTS: Final = frozenset(
    ("accountnumber", "bankaccount", "bankaccountnumber", "iban", "routingnumber")
)
"""Names of what money is sent to; a card's number is what it is taken from, and none of them."""

_WHOLE: Final = frozenset((KeyClass.PASSWORD, KeyClass.COOKIE))
_WHOLE_LISTS: Final = _WHOLE | {KeyClass.TOKEN, KeyClass.HEADER, KeyClass.PHRASE, KeyClass.CODE}


class Verdict(NamedTuple):
    """What happens to one value because of its name."""

    kind: str  # what it is
    rule: str  # which rule removes it
    whole: bool = False  # every scalar beneath a container goes; otherwise only a scalar goes
    start: int = 0  # characters of a string that stay in front (a header's scheme)


class KeyRules(NamedTuple):
    """How one redactor reads key names."""

    extra: frozenset[str]  # the user's own key names, normalised
    pii: bool  # whether names of personal numbers count
    # a text without the placeholders in it. A name with one means what was removed from it and
    # nothing about the value beside it, and a value is no secret for its placeholders: else a
    # second pass removes what the first one kept
    without: Callable[[str], str]
    accounts: bool = True  # whether a number of a bank account counts by its name alone

    def judge(self, name: str, value: Any) -> Verdict | None:
        """Whether a value is secret because of its key."""
        extra = is_extra(name, self.extra)
        if not self.accounts and not extra and normal_name(name) in _BANK_ACCOUNTS:
            return None
        verdict = judge(name, value, extra=extra, pii=self.pii)
        if verdict is None or self.without(name) != name:
            return None
        rest = self.without(value) if type(value) is str else value
        return verdict if rest == value or judge(name, rest, extra=extra, pii=self.pii) else None


def judge(name: str, value: Any, *, extra: bool = False, pii: bool = True) -> Verdict | None:
    """Whether a value is secret because of its key."""
    found = KeyClass.PASSWORD if extra else classify(name)
    if found is KeyClass.NONE:
        return None
    verdict = Verdict(kind_of_key(found), "key:" + found.value)
    kind = type(value)
    if kind is str:
        start = _string(found, name, value, pii)
        return None if start < 0 else verdict._replace(start=start)
    if kind is int:
        return verdict if _number(found, name, value, pii, extra) else None
    if kind is float:
        return verdict if found is KeyClass.PASSWORD else None
    if kind is dict:
        goes = _is_secret_mapping(found, name, value)
    elif kind in (list, tuple):
        goes = _is_secret_list(found, name, value, extra=extra)
    else:
        return None
    return verdict._replace(whole=True) if goes else None


def _is_secret_mapping(found: KeyClass, name: str, value: Mapping[Any, Any]) -> bool:
    """Whether all that a mapping holds is secret: ``tokens: {"prod": "..."}``."""
    many = found is KeyClass.TOKEN and name.rstrip("_-").lower().endswith("s")
    if found not in _WHOLE and not many:
        return False
    return not _describes(value)


def _is_secret_list(found: KeyClass, name: str, value: Sequence[Any], *, extra: bool) -> bool:
    """Whether all that a list holds is secret."""
    # errors: {"password": ["is too short"]}
    if value and not extra and all(_is_message_or_listing(part, found) for part in value):
        return False
    if found in _WHOLE_LISTS:
        return True
    # auth: ["bob", "hunter2"]
    if name.lower() == "auth" and len(value) == 2 and all(type(part) is str for part in value):
        return True
    return found in (KeyClass.WEAK, KeyClass.SERVICE) and _are_tokens(value)


def _are_tokens(items: Sequence[Any]) -> bool:
    """Whether all items of a list look like credentials."""
    return bool(items) and all(
        type(item) is str and plausible_token(item.encode("utf-8", "surrogatepass"))
        for item in items
    )


def _is_message_or_listing(item: Any, found: KeyClass) -> bool:
    """Whether an item is a message about a field of a form, or one line of a listing of what
    secrets there are.
    """
    if type(item) is dict and len(item) > 1 and found is KeyClass.TOKEN:
        texts = [
            (str(key).lower(), value)
            for key, value in item.items()
            if type(key) is str and type(value) is str
        ]
        harmless = (
            key in _LISTING or is_template(value.encode("utf-8", "surrogatepass"))
            for key, value in texts
        )
        return len(texts) == len(item) and all(harmless)
    return type(item) is str and is_sentence(item)


def _describes(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping describes a value instead of holding it (JSON Schema, a form's field)."""
    return value.get("type") in _TYPES or any(
        key in value for key in ("$ref", "anyOf", "oneOf", "allOf", "enum")
    )


def _string(found: KeyClass, name: str, value: str, pii: bool) -> int:
    """Where the secret part of a string starts; -1 when nothing secret is there."""
    raw = value[:65536].encode("utf-8", "surrogatepass")
    if is_template(raw):
        return -1
    if found is KeyClass.HEADER:
        part = header_secret(raw)
        return -1 if part is None else part[0]
    secret: bool
    match found:
        case KeyClass.PASSWORD | KeyClass.COOKIE:
            secret = not is_label(raw)
        case KeyClass.TOKEN:
            secret = (_token(raw) or normal_name(name).endswith(_SECRET_NAMES)) and not is_label(
                raw
            )
        case KeyClass.CODE:
            secret = any(char.isdigit() for char in value) and 3 <= len(value) <= 16
        case KeyClass.PHRASE:
            secret = " " in value or len(value) >= 16
        case KeyClass.PERSONAL:
            secret = pii and sum(char.isdigit() for char in value) >= 4
        case _:
            secret = plausible_token(raw, named=is_service(name)) or _pair(found, raw)
    return 0 if secret else -1


def _token(raw: bytes) -> bool:
    if raw.startswith((b"http://", b"https://")) or is_path(raw) or b" " in raw.strip():
        return (
            b" " in raw.strip()
            and not raw.replace(b" ", b"").isalpha()
            and raw[:7].lower() in (b"bearer ", b"basic d")
        )
    if raw.isdigit():
        return len(raw) >= 4
    if is_filler(raw) or is_stand_in(raw) or (is_word_like(raw) and reads_like_words(raw)):
        return False
    return len(raw) >= 6 or (len(raw) >= 4 and not raw.isalpha())


def _pair(found: KeyClass, raw: bytes) -> bool:
    user, colon, password = raw.partition(b":")
    return (
        found is KeyClass.WEAK
        and bool(colon and user and password)
        and b"//" not in raw
        and b" " not in raw
    )


def _number(found: KeyClass, name: str, value: int, pii: bool, extra: bool) -> bool:
    if extra:
        return True
    if found is KeyClass.CODE:
        return 1000 <= value < 10**10
    if found is KeyClass.PASSWORD:
        return value > 9 and not (value < 10**5 and name.lower() == "pass")
    if found is KeyClass.TOKEN:
        return value >= 10**5
    return found is KeyClass.PERSONAL and pii and value >= 10**6


def describes_members(mapping: Mapping[Any, Any]) -> bool:
    """Whether a member of a mapping describes another one, apart from that one's own key."""
    return (
        paired_name(mapping) is not None
        or "kty" in mapping
        or mapping.get("kind") == "Secret"
        or mapping.get("sensitive") is True
        or bool(_fields(mapping))
    )


def paired_name(mapping: Mapping[Any, Any]) -> tuple[str, tuple[str, ...]] | None:
    """The name in ``{"name": "Authorization", "value": "..."}``, and under which keys its value
    stands.
    """
    if not 2 <= len(mapping) <= 12:
        return None
    values = tuple(key for key in mapping if type(key) is str and _ends(key, VALUE_KEYS))
    if not values:
        return None
    for key in mapping:
        if type(key) is str and _ends(key, _NAME_KEYS) and key not in values:
            name = mapping[key]
            if type(name) is str and 2 <= len(name) <= 128:
                return name, values
    return None


def _fields(mapping: Mapping[Any, Any]) -> list[str]:
    """What is typed into a field of a page: ``{"selector": "#password", "text": "..."}``."""
    for key in _SELECTORS:
        selector = mapping.get(key)
        if type(selector) is str and len(selector) <= 512 and _SECRET_FIELD.search(selector):
            return [name for name in _TYPED if type(mapping.get(name)) is str]
    return []


def _ends(key: str, names: tuple[str, ...]) -> bool:
    """Whether a key is one of the names, or ends with one as its own word (``ParameterKey``)."""
    if key.lower() in names:
        return True
    last = _LAST_WORD.search(key)
    return last is not None and last.start() > 0 and last.group().lower() in names[:3]


def list_verdicts(items: Sequence[Any], rules: KeyRules) -> dict[int, Verdict]:
    """Items of a list that go because of the one before: ``["Authorization", "..."]``,
    ``["--password", "..."]``.
    """
    found: dict[int, Verdict] = {}
    if len(items) == 2 and type(items[0]) is str and len(items[0]) <= 128:
        verdict = rules.judge(items[0], items[1])
        if verdict is not None and not _two_words(items[0], items[1]):
            found[1] = verdict
    if len(items) >= 2:
        for index, (kind, rule, start) in argument_spans(
            items, lambda flag: rules.without(flag) != flag
        ).items():
            found.setdefault(index, Verdict(kind, rule, start=start))
        words = [
            item.encode("utf-8", "surrogatepass")
            for item in items
            if type(item) is str and len(item) <= 8
        ]
        if len(words) == len(items) and is_word_list(words):
            found.update(
                (index, Verdict("seed_phrase", "phrase:words")) for index in range(len(items))
            )
    return found


def _two_words(name: str, value: Any) -> bool:
    """Whether a list of two is a list of words (``["password", "email"]``) and not a name and its
    value.
    """
    return (
        classify(name) in (KeyClass.PASSWORD, KeyClass.TOKEN)
        and type(value) is str
        and _LISTED.fullmatch(value) is not None
    )


def is_extra(name: str, extra: frozenset[str]) -> bool:
    """Whether a key is one of the user's own."""
    return bool(extra) and normal_name(name) in extra


def member_verdicts(mapping: Mapping[Any, Any], rules: KeyRules) -> dict[str, Verdict]:
    """Members of a mapping that go because of their own key, or of the name beside them."""
    found: dict[str, Verdict] = {}
    for key, value in mapping.items():
        if type(key) is not str:
            continue
        verdict = rules.judge(key, value)
        if verdict is not None:
            found[key] = verdict
    found.update(_of_known_forms(mapping))
    for key in _fields(mapping):
        found[key] = Verdict("password", "browser:field")
    found.update(_of_pair(mapping, rules))
    return found


def _of_known_forms(mapping: Mapping[Any, Any]) -> dict[str, Verdict]:
    """Members that a standard or a tool keeps secrets in."""
    found: dict[str, Verdict] = {}
    # RFC 7518, 6: a JSON Web Key
    if type(mapping.get("kty")) is str:
        for key in _PRIVATE_OF_JWK & mapping.keys():
            if type(mapping[key]) is str and len(mapping[key]) >= 16:
                found[key] = Verdict("private_key", "jwk")
    # a Kubernetes manifest
    if mapping.get("kind") == "Secret":
        for key in _DATA_OF_SECRET:
            if type(mapping.get(key)) is dict:
                found[key] = Verdict("credential", "kubernetes:secret", whole=True)
    # an output of Terraform
    if mapping.get("sensitive") is True and "value" in mapping:
        found["value"] = Verdict("credential", "terraform:sensitive", whole=True)
    return found


def _of_pair(mapping: Mapping[Any, Any], rules: KeyRules) -> dict[str, Verdict]:
    """The value in ``{"name": "Authorization", "value": "..."}``."""
    paired = paired_name(mapping)
    if paired is None:
        return {}
    name, keys = paired
    found: dict[str, Verdict] = {}
    for key in keys:
        verdict = rules.judge(name, mapping[key])
        if verdict is not None:
            found[key] = verdict
    return found


def secret_paths(root: Any, rules: KeyRules) -> dict[Path, Verdict]:
    """Paths of all scalars in parsed JSON that key rules remove."""
    found: dict[Path, Verdict] = {}
    todo: list[tuple[Path, Any, Verdict | None]] = [((), root, None)]
    while todo:
        path, value, forced = todo.pop()
        for step, child, verdict in _children(value, forced, rules):
            if type(child) in (dict, list):
                below = verdict if verdict is not None and verdict.whole else None
                todo.append(((*path, step), child, below))
            elif verdict is not None and child is not None and type(child) is not bool:
                found[(*path, step)] = verdict
    return found


def _children(
    value: Any, forced: Verdict | None, rules: KeyRules
) -> Iterator[tuple[str | int, Any, Verdict | None]]:
    """The members of a mapping or the items of a list, each with what happens to it.

    Args:
        value: the mapping or list.
        forced: what happens to all of them.
        rules: how key names are read.
    """
    verdicts: Mapping[Any, Verdict] = {}
    if type(value) is dict:
        if forced is None:
            verdicts = member_verdicts(value, rules)
        children: Iterable[tuple[str | int, Any]] = value.items()
    else:
        if forced is None:
            verdicts = list_verdicts(value, rules)
        children = enumerate(value)
    for step, child in children:
        yield step, child, forced or verdicts.get(step)
