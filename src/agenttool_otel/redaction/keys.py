"""The class of a value by its key's name.

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
    """How strong a sign of a secret a name is."""

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
"""Kind of values whose key names the number of a card, an account or a person."""
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
"""Services that hand out keys: ``zendesk_token`` and ``SONAR.LOGIN`` name a credential in
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
    """The class of a key's value, by the key's name."""
    # the bound comes before the cache, so that long keys of foreign data can't fill the memory
    if not 2 <= len(name) <= 128 or "=" in name or "\n" in name:
        return KeyClass.NONE
    return _classify(name)


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
    found = _class_of_head(words, compact)
    if service and found in (KeyClass.NONE, KeyClass.WEAK):
        return KeyClass.SERVICE
    return found


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


def _class_of_head(words: list[str], compact: str) -> KeyClass:
    """The class of a name by its last words: ``db_password``, ``github_access_token``.

    Args:
        words: the words of the name, at least one, without what may stand at its end.
        compact: all of them together.
    """
    head = words[-1]
    before = words[-2] if len(words) > 1 else ""
    pair = before + head
    if compact in _PHRASES or pair in _PHRASES:
        return KeyClass.PHRASE
    if _is_code(head, pair, compact):
        return KeyClass.CODE
    if _is_password(head, pair, compact):
        return KeyClass.NONE if _is_other_pass(words) else KeyClass.PASSWORD
    if _is_personal(head, pair, compact):
        return KeyClass.PERSONAL
    # non_secret_token
    if not _NEGATIONS.isdisjoint(words[:-1]):
        return KeyClass.NONE
    if head in ("token", "tokens"):
        return _class_of_token(words)
    if head in _SECRET or head in _TOKEN or pair in _TOKEN:
        return KeyClass.TOKEN
    if head in ("key", "keys", "seed"):
        return _class_of_key(head, before)
    if pair == "secretid" or head in _WEAK:
        return KeyClass.WEAK
    return _class_of_joined_words(words)


def _is_code(head: str, pair: str, compact: str) -> bool:
    if compact in _CODES or pair in _CODES:
        return True
    # in a longer name "tan" is a colour or a tangent
    return head in _CODES and head != "tan"


def _is_password(head: str, pair: str, compact: str) -> bool:
    if head in _PASSWORD or pair in _PASSWORD or compact in _PASSWORD:
        return True
    return head.endswith(_PASSWORD_AT_END)


def _is_other_pass(words: list[str]) -> bool:
    """``render_pass``, ``failed_passwords``: no password by what stands before."""
    head = words[-1]
    before = words[-2] if len(words) > 1 else ""
    if head == "pass" and before in _PASS_NOT:
        return True
    # "pass" ends with an s, but is no plural
    if head != "pass" and head.endswith("s") and before in _COUNTED:
        return True
    return not _LABELS.isdisjoint(words)


def _is_personal(head: str, pair: str, compact: str) -> bool:
    if compact in _PERSONAL or pair in _PERSONAL:
        return True
    # as the last word of a longer name these are too often something else
    return head in _PERSONAL and head not in ("pan", "dni", "creditcard")


def _class_of_token(words: list[str]) -> KeyClass:
    # next_page_token, max_tokens
    if any(word in _NOT_TOKENS for word in words[:-1]):
        return KeyClass.NONE
    if words[-1] == "token":
        return KeyClass.TOKEN
    return KeyClass.WEAK


def _class_of_key(head: str, before: str) -> KeyClass:
    # primary_key, random_seed
    if before in _KEY_NOT or before not in _KEY_BEFORE:
        return KeyClass.NONE
    if head == "seed":
        return KeyClass.WEAK
    return KeyClass.TOKEN


def _class_of_joined_words(words: list[str]) -> KeyClass:
    """The class of words that are written together: ``dbpassword``, ``authtoken``."""
    passwords, tokens = _COMPACT
    word = words[0]
    if len(words) > 1 or len(word) <= 5 or not word.endswith(passwords + tokens):
        return KeyClass.NONE
    end = next(end for end in passwords + tokens if word.endswith(end))
    stem = word.removesuffix(end)
    # pagetoken
    if any(stem.endswith(other) for other in _NOT_TOKENS if len(other) > 3):
        return KeyClass.NONE
    if word.endswith(passwords):
        return KeyClass.PASSWORD
    return KeyClass.TOKEN


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
