"""What a key's name says about its value.

``{"password": "hunter2"}`` and ``PIN: 4921`` hold secrets that no value rule can see. Names are
split into words (``nextPageToken``: next, page, token), and the head word decides together with the
words before it: ``api_key`` is a credential, ``primary_key`` isn't; ``access_token`` is,
``max_tokens`` and ``next_page_token`` aren't; ``secret_name`` only names one. Substrings never
decide: ``secretary``, ``monkey``, ``author``.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import lru_cache
from typing import Final

from agenttool_otel.redaction.plausibility import is_sentence, is_template, plausible_token
from agenttool_otel.redaction.words import words


class KeyClass(Enum):
    """How strongly a name speaks for a secret."""

    NONE = "none"
    """Not at all."""
    PASSWORD = "password"  # noqa: S105  (a class of names, not a password)
    """Any value is secret, however short or plain."""
    TOKEN = "token"  # noqa: S105
    """A credential made by a machine; numbers that count tokens are not."""
    WEAK = "weak"
    """Could hold a credential (``auth``, ``credentials``): only values that look
    machine-made count.
    """
    SERVICE = "service"
    """Names a service that hands out keys; only values that look machine-made count."""
    HEADER = "header"
    """An HTTP header that carries credentials: scheme and value."""
    COOKIE = "cookie"
    """A cookie header: names and values."""
    CODE = "code"
    """A PIN, one-time code or card verification code: short digits."""
    PHRASE = "phrase"
    """A wallet's recovery phrase: many words."""
    PERSONAL = "personal"
    """A number of a card, account or person: digits and letters."""


PERSONAL_NUMBER: Final = "personal_number"
"""Kind of values whose key says that they are the number of a card, an account or a person."""
_SPLIT: Final = re.compile(
    r"[\W_]+|(?<=[a-z])(?=[A-Z])|(?<=[a-z]\d)(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])"
)
(
    _PASSWORD,
    _PASS_NOT,
    _LABELS,
    _COUNTED,
    _SECRET,
    _TOKEN,
    _KEY_BEFORE,
    _KEY_NOT,
    _NOT_TOKENS,
    _TAILS,
    _CODES,
    _PHRASES,
    _PERSONAL,
    _HEADERS,
    _COOKIES,
    _WEAK,
    _NOT_SERVICES,
    _SERVICE_TAILS,
) = map(
    words,
    (
        "passwords",
        "pass_not",
        "label_words",
        "counted",
        "secrets",
        "tokens",
        "key_before",
        "key_not",
        "not_tokens",
        "tails",
        "codes",
        "phrases",
        "personal",
        "headers",
        "cookies",
        "weak",
        "not_services",
        "service_tails",
    ),
)
_PASSWORD_AT_END: Final = tuple(words("passwords_at_end"))
_LABEL_VALUES: Final = (_PASSWORD | words("shown")) - {
    "pass",
    "pw",
    "psw",
    "psk",
    "mdp",
    "passcode",
    "passkey",
}
_LONG_LABELS: Final = tuple(word for word in _LABEL_VALUES if len(word) > 5)
_LINKS: Final = frozenset(["for", "of", "to", "from", "in", "by", "with", "on", "at", "is"])
SERVICES: Final = words("services")
"""Services that hand out keys: ``zendesk_token`` and ``SONAR.LOGIN`` speak for a credential in
whatever form.
"""
_COMPACT: Final = tuple(sorted(words("compact_passwords"))), tuple(sorted(words("compact_tokens")))
_WRITTEN: Final = re.compile(
    r"[^\W\d_]+(?:[ '’·:.?!*()（）-]{1,2}[^\W\d_]*){0,8}"
)  # words, which no machine and hardly a person takes
CODE_VALUE: Final = re.compile(
    rb"(?=.*\d)(?:\d{3,10}|[0-9a-f]{4,6}(?:-[0-9a-f]{4,6}){1,3}|[a-z0-9]{5}-[a-z0-9]{5})"
)
"""A PIN or a code that is asked for once: digits, or groups of them and letters."""
_NEGATIONS: Final = frozenset(["non", "not", "nonmatching"])


def normal_name(name: str) -> str:
    """A name without case and separators, for comparing whole names."""
    return re.sub(r"[\W_]", "", name.lower())


def _words(name: str) -> list[str]:
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
    return [word.lower() for word in _SPLIT.split(name) if word]


def classify(name: str) -> KeyClass:
    """What a key's name says about its value."""
    # the bound comes before the cache, so that long keys of foreign data can't fill the memory
    return (
        KeyClass.NONE
        if not 2 <= len(name) <= 128 or "=" in name or "\n" in name
        else _classify(name)
    )


@lru_cache(maxsize=8192)
def _classify(name: str) -> KeyClass:
    words = _words(name)
    for index, word in enumerate(words):
        if word in _LINKS and index:
            words = words[:index]
            break
    compact = "".join(words)
    if compact in _HEADERS:
        return KeyClass.HEADER
    if compact in _COOKIES:
        return KeyClass.COOKIE
    if not words:
        return KeyClass.NONE
    service = bool(_services(words, compact))
    while len(words) > 1 and (words[-1] in _TAILS or words[-1].isdigit()):
        words.pop()
    words[-1] = words[-1].rstrip("0123456789") or words[-1]
    compact = "".join(words)
    found = _head(words, compact)
    return KeyClass.SERVICE if found in (KeyClass.NONE, KeyClass.WEAK) and service else found


def is_service(name: str) -> bool:
    """Whether a name mentions a service that hands out keys."""
    words = _words(name[:128])
    return bool(_services(words, "".join(words)))


def _services(words: list[str], compact: str) -> bool:
    """Whether the words are a service's name, alone or followed only by words that go with a
    credential.
    """
    if compact in _NOT_SERVICES:
        return False
    for size in (1, 2):
        for start in range(len(words) - size + 1):
            if "".join(words[start : start + size]) in SERVICES:
                rest = words[start + size :]
                if all(
                    word.rstrip("0123456789") in _SERVICE_TAILS or not word.isalpha()
                    for word in rest
                ):
                    return True
    return compact in SERVICES


def _head(words: list[str], compact: str) -> KeyClass:
    head = words[-1]
    before = words[-2] if len(words) > 1 else ""
    pair = before + head
    if compact in _PHRASES or pair in _PHRASES:
        return KeyClass.PHRASE
    if compact in _CODES or pair in _CODES or head in _CODES - {"tan"}:
        return KeyClass.CODE
    if (
        head in _PASSWORD
        or pair in _PASSWORD
        or compact in _PASSWORD
        or head.endswith(_PASSWORD_AT_END)
    ):
        others = _PASS_NOT if head == "pass" else _COUNTED if head.endswith("s") else ()
        if before in others or not _LABELS.isdisjoint(words):
            return KeyClass.NONE
        return KeyClass.PASSWORD
    if (
        compact in _PERSONAL
        or pair in _PERSONAL
        or (head in _PERSONAL and head not in ("pan", "dni", "creditcard"))
    ):
        return KeyClass.PERSONAL
    if any(word in _NEGATIONS for word in words[:-1]):
        return KeyClass.NONE
    if head in ("token", "tokens"):
        if any(word in _NOT_TOKENS for word in words[:-1]):
            return KeyClass.NONE
        return KeyClass.TOKEN if head == "token" else KeyClass.WEAK
    if head in _SECRET or head in _TOKEN or pair in _TOKEN:
        return KeyClass.TOKEN
    if head in ("key", "keys", "seed"):
        if before in _KEY_NOT:
            return KeyClass.NONE
        return (
            KeyClass.NONE
            if before not in _KEY_BEFORE
            else KeyClass.WEAK
            if head == "seed"
            else KeyClass.TOKEN
        )
    if pair == "secretid":
        return KeyClass.WEAK
    if head in _WEAK:
        return KeyClass.WEAK
    if len(words) == 1 and len(compact) > 5 and compact.endswith(_COMPACT[0] + _COMPACT[1]):
        stem = next(
            compact.removesuffix(end) for ends in _COMPACT for end in ends if compact.endswith(end)
        )
        if any(stem.endswith(word) for word in _NOT_TOKENS if len(word) > 3):
            return KeyClass.NONE
        return KeyClass.PASSWORD if compact.endswith(_COMPACT[0]) else KeyClass.TOKEN
    return KeyClass.NONE


def fits_class(found: KeyClass, value: bytes, *, service: bool) -> bool:
    """Whether a value that stands apart from its name is a secret, by the name's class."""
    if is_template(value):
        return False
    digits = sum(48 <= byte <= 57 for byte in value)
    match found:
        case KeyClass.PASSWORD | KeyClass.COOKIE:
            return not is_label(value)
        case KeyClass.TOKEN | KeyClass.WEAK | KeyClass.SERVICE | KeyClass.HEADER:
            return plausible_token(
                value.rpartition(b" ")[2], named=service or found is KeyClass.SERVICE, quoted=True
            )
        case KeyClass.CODE:
            return CODE_VALUE.fullmatch(value) is not None
        case KeyClass.PERSONAL:
            return digits >= 4
    return False


def is_label(value: bytes) -> bool:
    """Whether a value is the word for a password in some language, or a sentence with it, as labels
    of forms are.
    """
    text = value[:256].decode("utf-8", "replace")
    named = is_sentence(text) and any(
        normal_name(word).removesuffix("s") in _LABEL_VALUES for word in text.split()
    )
    written = len(value) <= 96 and not value.isascii() and _WRITTEN.fullmatch(text) is not None
    plain = normal_name(text) if len(value) <= 96 else ""
    named |= (
        plain.isalpha()
        and b" " in value
        and (plain.startswith(_LONG_LABELS) or plain.endswith(_LONG_LABELS))
    )
    return (named and len(value) < 256) or written or plain in _LABEL_VALUES


def kind_of_key(found: KeyClass) -> str:
    """The kind that a redaction by key name states."""
    return _KINDS.get(found, "credential")


_KINDS: Final = {
    KeyClass.PASSWORD: "password",
    KeyClass.HEADER: "authorization",
    KeyClass.COOKIE: "cookie",
    KeyClass.CODE: "access_code",
    KeyClass.PHRASE: "seed_phrase",
    KeyClass.PERSONAL: PERSONAL_NUMBER,
}
