"""What looks like a secret and is none: placeholders, examples, variables, code, words, versions.

Scanners that lack this drown in false positives; scanners that overdo it leak. So there are two
levels: ``is_template`` holds for any rule (nothing secret is there), ``plausible_token``
is whether a value could be a machine-made credential, and is asked only if nothing but a weak key
name points to one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import Final

from agenttool_otel.redaction.templates import REFERENCE, TEMPLATE
from agenttool_otel.redaction.words import byte_words, reads_like_words, words
from agenttool_otel.redaction.work import spend

_GRAMMAR: Final = words("grammar")
# "eyJhbGciOi...": what an example or a log shows of a credential
_ELIDED = re.compile(rb"[A-Za-z0-9_\-.]{0,16}(?:\.\.\.|\xe2\x80\xa6)")
FROM_ENVIRONMENT: Final = r"os\.environ|process\.env|getenv|System\.getenv|env\."
"""``os.environ["DB_PASSWORD"]``"""
FROM_OBJECTS: Final = r"self\.|this\.|config\.|settings\.|secrets\."
"""``config.password``"""
FROM_STORES: Final = r"vault:|ssm:|secretsmanager:|op://|ref\+|!Ref|!Sub|valueFrom"
"""``op://vault/db``, ``!Ref DbPassword``"""
_READ_FROM = f"(?:{FROM_ENVIRONMENT}|{FROM_OBJECTS}|{FROM_STORES}).*"
# Get-Secret of PowerShell
_CMDLET = r"(?:Get|Read|New|ConvertTo|ConvertFrom|Import|Select|Unprotect)-[A-Z]\w+"
_CODE = re.compile(rf"(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|{_READ_FROM}|{_CMDLET})".encode())
_UPPER_WORDS = re.compile(rb"[A-Z]{2,}(?:[_-][A-Z]{2,})+")
_FILLER = re.compile(rb"[xX]{8,}|\*{4,}|\#{4,}|\.{4,}|X{5,}-X{4,}|x{5,}-x{4,}")
_SAME = re.compile(rb"(.)\1{9,}", re.DOTALL)
_VERSION = re.compile(rb"(?:^|[-_@:v/^~=])v?\d+\.\d+(?:\.\d+)*(?:[-_.+][A-Za-z0-9.]+)?$")
_WORDS: Final = byte_words("stand_ins")
REQUESTS: Final = rb"your[_-]|[_-]here|<your|change[_-]?me|replace_?me|insert_|put_your"
"""``your_api_key``, ``changeme``"""
NOT_REAL: Final = rb"placeholder|dummy|todo|redacted|my-bot-token|not-a-real|notareal"
"""``not-a-real-key``"""
IN_ONE_WORD: Final = rb"tokenhere|stringhere|keyhere"
"""``YOURTOKENHERE``"""
_HINT = re.compile(REQUESTS + rb"|" + NOT_REAL + rb"|" + IN_ONE_WORD)
_TOKEN_CHARS = re.compile(rb"[A-Za-z0-9_\-.=+/~%|]+")
_SEPARATORS = re.compile(rb"[-_./=|~+]+")
_PRINTED = re.compile(rb"[\x21-\x7e]+")
_SYMBOLS_OF_TEXT = re.compile(
    rb"://|[{}<>]|^[\w.:]+\(.*\)$|^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$|^[\w-]+(?:[:.,/][\w-]+)+$"
)
FOUR_KINDS: Final = re.compile(rb"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[^\w]|.*_)[^\s/:]{8,64}")
"""A password that has letters of both cases, digits and signs."""
_SIGNS = re.compile(rb"[^\w:.,/-]")
_JUDGED: Final = 16  # units of work
_DIGIT = re.compile(rb"[0-9]")
_PATH = re.compile(
    rb"(?:\.{0,2}|~)/(?:\.?(?:[A-Za-z]|[A-Z]?[a-z]{1,14}(?:[-_]?[a-z0-9]{1,14}){0,4})(?:[/.]|$)|$)"
)
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def entropy(value: bytes) -> float:
    """Shannon entropy in bits per byte."""
    size = len(value)
    if not size:
        return 0.0
    counted = sum(map(_bits, Counter(value).values()))
    return math.log2(size) - counted / size


@lru_cache(maxsize=1024)
def _bits(times: int) -> float:
    return times * math.log2(times)


def has_letter_sequence(value: bytes, least: int = 8) -> bool:
    """Whether it has a run of letters in alphabetical order (``abcdefgh``), as only hand-made
    examples do.
    """
    run = 1
    before = 0
    for byte in value[:512].lower():
        run = run + 1 if byte == before + 1 and 97 <= before < 122 else 1
        if run >= least:
            return True
        before = byte
    return False


def is_filler(value: bytes) -> bool:
    """Whether a value of a known format is filled with x, stars, one repeated character or
    ``abcdef``.
    """
    if _FILLER.search(value):
        return True
    same = _SAME.search(value)
    if same is not None and (same.end() - same.start()) * 2 >= len(value):
        return True
    return has_letter_sequence(value)


def is_template(value: bytes) -> bool:
    """Whether nothing secret is there: empty, a variable, a template, a run of stars, a word that
    only stands in.
    """
    if len(value) > 256:
        # a sealed secret of Kubernetes is longer than what is looked at
        return value[:2] == b"Ag" and TEMPLATE.fullmatch(value[:256]) is not None
    if TEMPLATE.fullmatch(value) is not None:
        return True
    if value.lower().rstrip(b",;.") in _WORDS:
        return True
    # \xa6 is the last byte of an ellipsis
    if value[-1:] in (b".", b"\xa6") and _ELIDED.fullmatch(value) is not None:
        return True
    if b":" in value[:64] or value[:1] == b"@":
        return REFERENCE.match(value) is not None
    return False


def is_stand_in(value: bytes) -> bool:
    """Whether a value names itself as a stand-in (``YOUR_API_KEY_HERE``)."""
    return _template_word(value[:256])


def is_sentence(text: str) -> bool:
    """Whether it is a sentence about something, and not a passphrase: words, and grammar
    among them.
    """
    parts = text.lower().split(maxsplit=40)
    return 2 <= len(parts) <= 40 and not _GRAMMAR.isdisjoint(parts)


@lru_cache(maxsize=4096)
def _template_word(value: bytes) -> bool:
    return _HINT.search(value.lower()) is not None or _UPPER_WORDS.fullmatch(value) is not None


def is_code(value: bytes) -> bool:
    """Whether an unquoted value of source text is an expression (``config.password``,
    ``os.environ[...]``).
    """
    return _CODE.fullmatch(value) is not None


def _has_symbols(value: bytes) -> bool:
    """Whether it could be a generated secret with any printed characters: no address, no path, no
    expression.
    """
    if len(value) < 12 and FOUR_KINDS.fullmatch(value) is None:
        return False
    if _PRINTED.fullmatch(value) is None or not has_digit(value):
        return False
    if is_template(value) or _template_word(value) or is_filler(value) or is_path(value):
        return False
    if _SYMBOLS_OF_TEXT.search(value) is not None:
        # hosts and calls have a few signs, a long generated secret has many
        signs = set(_SIGNS.findall(value))
        if len(value) < 32 or len(signs) < 4:
            return False
    return entropy(value) >= 3.0


def has_digit(value: bytes) -> bool:
    """Whether a digit occurs."""
    return _DIGIT.search(value) is not None


def is_path(value: bytes) -> bool:
    """Whether it is a path from a root, the home or the working directory, and not base64 that
    starts with a slash.
    """
    return _PATH.match(value) is not None


def is_word_like(value: bytes) -> bool:
    """Whether it is put together from words, numbers and a version, as names of things are."""
    if _UUID.fullmatch(value):
        return False
    if _VERSION.search(value):
        return True
    parts = [part for part in _SEPARATORS.split(value) if part]
    if len(parts) < 2:
        return False
    plain = 0
    for part in parts:
        if _is_word(part) or (part.isdigit() and len(part) <= 8):
            plain += len(part)
    return plain * 3 >= sum(map(len, parts)) * 2


def _is_word(part: bytes) -> bool:
    """Letters with vowels in them, or an upper-case abbreviation with at most two digits behind."""
    core = part.rstrip(b"0123456789")
    if not core.isalpha() or len(part) - len(core) > 4:
        return False
    if len(core) <= 4:
        return True
    lower = core.lower()
    if not (core.islower() or core.isupper() or core.istitle()):
        return len(part) == len(core) and _CAMEL.fullmatch(core) is not None
    vowels = sum(lower.count(v) for v in b"aeiouy")
    return 0.2 <= vowels / len(lower) <= 0.7


_CAMEL = re.compile(rb"[A-Za-z][a-z]{2,}(?:[A-Z][a-z]{1,})*")


def plausible_token(
    value: bytes, *, least: int = 10, named: bool = False, quoted: bool = False
) -> bool:
    """Whether a value could be a machine-made credential."""
    head, _, secret = value.rpartition(b":")
    # base64:c2VjcmV0 and id:secret hold it behind the colon, 12:34 is no such pair
    if b":" not in head and not head.isdigit():
        value = secret
    if len(value) < least:
        return False
    spend(_JUDGED)
    if _TOKEN_CHARS.fullmatch(value) is None:
        return quoted and _has_symbols(value)
    if not has_digit(value) and _is_made_of_words(value, named=named):
        return False
    if _is_no_secret(value) or is_word_like(value):
        return False
    if value.isdigit() and not named:
        return len(value) >= 12 and entropy(value) >= 2.2
    least_entropy = 2.0 if len(value) < 16 else 2.4
    return entropy(value) >= least_entropy


def _is_made_of_words(value: bytes, *, named: bool) -> bool:
    """Whether a value without digits reads like words, and no service's name stands for a token."""
    # ZENDESK_TOKEN=qwmzrtplkhgfdsaxcvbn
    if named and len(value) >= 20 and value.islower() and value.isalpha():
        return False
    return reads_like_words(value)


def _is_no_secret(value: bytes) -> bool:
    # wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
    if value.endswith((b"EXAMPLE", b"EXAMPLEKEY")):
        return True
    return is_template(value) or _template_word(value) or is_filler(value)
