"""Names and values in text: ``password = hunter2``, ``"api_key": "..."``, ``<secret>...</secret>``.

A name's class (``keys.classify``) says how much the value itself has to look like a secret. In
source text and prose the bar is higher than in decoded structure, because ``password: required``
and ``token = get_token()`` are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from agenttool_otel.redaction.detectors.bounds import (
    called,
    closing,
    is_name,
    is_open,
    name_start_of,
    sentence,
    whole,
)
from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.keys import (
    CODE_VALUE,
    SERVICES,
    KeyClass,
    classify,
    is_label,
    is_service,
    kind_of_key,
    normal_name,
)
from agenttool_otel.redaction.patterns import (
    LONG_PATTERNS,
    MATCH,
    compile_pattern,
    find_all,
    spans_of,
)
from agenttool_otel.redaction.plausibility import (
    has_digit,
    is_code,
    is_filler,
    is_stand_in,
    is_template,
    plausible_token,
)
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words

_LONG_PATTERNS: Final = LONG_PATTERNS["assignments"]
_LATIN = _LONG_PATTERNS["latin"]
_OTHER = "hasło|lösenord|şifre|mật khẩu|пароль|パスワード|口令|密码|密碼|暗証番号|비밀번호|암호|รหัสผ่าน|סיסמה"
KEYWORDS = f"{_LATIN}|{_OTHER}"
"""Alternation of what the name of a secret has in it."""
NAME_END = r"[\w.\-\x{80}-\x{10ffff}]*"
"""The rest of a name behind such a word, in any script."""
_PATTERN = _LONG_PATTERNS["pattern"]
_OTHER_PATTERN = _PATTERN.replace("<NAMES>", _OTHER)
_SERVICE_PATTERN = _LONG_PATTERNS["service_pattern"]
# apiKey: string = "...", api_key string = "...", API_KEY: &'static str = "...", char password[] =
# "..."
_TYPED_PATTERN = _LONG_PATTERNS["typed"].replace("<NAMES>", KEYWORDS)
_NAME_ONLY = re.compile(rb"\w+")
_INNER_QUOTE = re.compile(rb"\\{1,7}[\"']")
_CLOSING_ELEMENT = re.compile(rb"\s{0,64}<[/!]")
_PART = re.compile(rb"(?:arn:[\w:/-]*:|[-_]file=|\[type=)\Z")
_VARIABLE_DEFAULT = re.compile(rb"[-=]([^}\r\n]+)")
_VARIABLE = re.compile(_LONG_PATTERNS["variable"].encode())
_WORDS_BEFORE_NAME = re.compile(rb"(?:[A-Za-z]{2,14} ){1,2}\Z")
_UP_TO_WHITE_SPACE = frozenset(
    (KeyClass.PASSWORD, KeyClass.HEADER, KeyClass.CODE, KeyClass.PERSONAL)
)
_MOST_VALUE_BYTES = 4096
_SHORT_VALUE_BYTES = 64
_MOST_NESTED = 4
_CONTEXT_BEFORE_BYTES = 128
_CONTEXT_AFTER_BYTES = 256
_MOST_REMEMBERED = 64
_NESTED_BYTES = 512
_WORDS_AFTER = re.compile(
    rb"[ \t]+(?:\d{1,4}[ \t]*)?(?:[A-Za-z\x80-\xff]{2,}|%[a-z]|\d{1,3}[~-]\d)"
)
_PLAIN_WORD = re.compile(rb"[A-Za-z\x80-\xff/]{1,48}[.!?,:]?")
_LISTED = re.compile(rb"\W{0,2}[A-Za-z_.:/-]*")
_NAMED_RESULT = re.compile(_LONG_PATTERNS["named_result"].encode())
_EXPRESSION = re.compile(_LONG_PATTERNS["expression"].encode())
_GENERIC_TYPE = re.compile(rb"[A-Z]\w*<[A-Za-z&'][\w, <>&':.]*>")
_FILE_OR_GRAPHQL_TYPE = re.compile(_LONG_PATTERNS["file_or_graphql_type"].encode())
_TYPE = re.compile(_LONG_PATTERNS["type"].encode())
_TYPE_NAME = re.compile(rb"(?:[A-Z][a-z0-9]+){2,4}[?!]?")
_DECLARATION = re.compile(_LONG_PATTERNS["declaration"].encode())
_SQL_ROLE = re.compile(rb"(?i)\b(?:user|role)\b[^;]*\Z")
_PASSPHRASE_CHARACTERS = re.compile(rb"[A-Za-z0-9!@#$%^&*_+-]+")
_CODE_CALL = re.compile(
    rb"[A-Za-z_][\w.]*[(\[](?:[^\s]*|[\w=]{0,16}[\"'][^\"'\r\n]{0,80}[\"'])[)\]]"
)
_PERSONAL_VALUE = re.compile(rb"(?=(?:[^0-9]*\d){4})[A-Za-z0-9][A-Za-z0-9 .\-/]{4,36}")


Groups = Sequence[tuple[int, int]]
"""Start and end of a match, of what closes the name's quote, the delimiter, the opening quote, and
the bare value.
"""


def find_in_assignments(
    data: bytes, lowered: bytes, *, extra_keys: frozenset[str] = frozenset()
) -> Iterable[Span]:
    """Spans of values, without their quotes."""
    latin = _names_pattern(extra_keys)
    # two patterns, because one with all words is too large for the fast ways of RE2
    patterns = (latin,) if data.isascii() else (latin, _OTHER_PATTERN)
    fruitless: set[tuple[int, bytes]] = set()
    for match in chain.from_iterable(find_all(pattern, data, 2 * MATCH) for pattern in patterns):
        groups = spans_of(match, 4)
        start, end = groups[0]
        before = min(start, _CONTEXT_BEFORE_BYTES)
        around = (before, data[start - before : end + _CONTEXT_AFTER_BYTES])
        if around in fruitless:
            # the very same text as before, which holds nothing: tables, and what is written to be
            # slow
            continue
        if (span := _judge(data, groups, extra_keys)) is not None:
            yield span
        elif _could_nest(data, groups):
            yield from _nested(data, groups, extra_keys, _MOST_NESTED)
        elif len(fruitless) < _MOST_REMEMBERED and _ends_near(data, groups):
            fruitless.add(around)
    if b"=" in data:
        for match in find_all(_TYPED_PATTERN, data, 2 * MATCH):
            if (span := _judge(data, spans_of(match, 4), extra_keys, typed=True)) is not None:
                yield span
    for match in find_all(_services_pattern(), data):
        if (span := _judge(data, spans_of(match, 4), extra_keys, service_only=True)) is not None:
            yield span


def _ends_near(data: bytes, groups: Groups) -> bool:
    """Whether a value is bare, or its quotes close within the text that is remembered."""
    first, last = groups[3]
    return first < 0 or data.find(data[first:last], last, groups[0][1] + _CONTEXT_AFTER_BYTES) >= 0


@lru_cache(maxsize=32)
def _names_pattern(extra_keys: frozenset[str]) -> str:
    return _PATTERN.replace(
        "<NAMES>",
        "|".join((*(re.escape(key) for key in sorted(extra_keys) if key.isascii()), _LATIN)),
    )


@lru_cache(maxsize=1)
def _services_pattern() -> str:
    return _SERVICE_PATTERN.replace("<NAMES>", service_words())


def _nested(data: bytes, groups: Groups, extra_keys: frozenset[str], left: int) -> Iterable[Span]:
    """What stands in the value of a name: ``auth:`` with ``password: hunter2`` on the next line."""
    first, last = groups[4]
    part = data[first : first + _NESTED_BYTES]
    inner = compile_pattern(_names_pattern(extra_keys)).search(part)
    if inner is None or inner.start() >= last - first:
        return
    its_groups = spans_of(inner, 4)
    span = _judge(part, its_groups, extra_keys)
    found = [span] if span is not None else []
    if not found and left and _could_nest(part, its_groups):
        found = list(_nested(part, its_groups, extra_keys, left - 1))
    for span in found:
        yield Span(first + span.start, first + span.end, span.kind, span.rule)


class _Assignment:
    """A name, a delimiter and where the value begins, as the patterns found them."""

    __slots__ = (
        "bare",
        "before",
        "data",
        "delimiter",
        "found",
        "mark",
        "mark_end",
        "name",
        "name_end",
        "name_start",
        "opened",
        "opening",
        "quote_end",
        "typed",
    )

    def __init__(self, data: bytes, groups: Groups, typed: bool) -> None:
        (
            (start, _),
            (self.name_end, self.quote_end),
            (self.mark, self.mark_end),
            quote,
            self.bare,
        ) = groups
        self.opening, self.opened = quote
        self.data = data
        self.typed = typed
        self.name_start = name_start_of(data, start)
        if typed:
            name = _NAME_ONLY.match(data, start)
            self.name_end = self.quote_end = name.end() if name is not None else start
        self.before = data[self.name_start - 1] if self.name_start else 10
        self.delimiter = data[self.mark : self.mark_end]
        self.name = data[self.name_start : self.name_end].decode("utf-8", "replace").strip(".- ")
        self.found = KeyClass.NONE

    @property
    def quoted(self) -> bool:
        """Whether the value stands in quotes."""
        return self.opening >= 0


def _judge(
    data: bytes,
    groups: Groups,
    extra_keys: frozenset[str],
    *,
    service_only: bool = False,
    typed: bool = False,
) -> Span | None:
    """The secret value of one assignment, if it has one."""
    it = _Assignment(data, groups, typed)
    quoted = it.quoted
    found = it.found = _class_of(it, extra_keys, service_only=service_only)
    if found in (KeyClass.NONE, KeyClass.COOKIE) or (
        found is KeyClass.HEADER and "authorization" in it.name.lower()
    ):
        return None  # headers.py knows schemes and pairs
    if any(rule(it) for rule in (_NO_QUOTED_ASSIGNMENT if quoted else _NO_BARE_ASSIGNMENT)):
        return None
    bounds = _quoted_value(it) if quoted else _bare_value(it)
    if bounds is None:
        return None
    first, last = bounds
    value = data[first:last]
    if not quoted and (it.delimiter.startswith(b"==") or value[:1] == b"="):
        # a comparison of names in source text, unless what is behind it can only be a credential
        secret = plausible_token(value)
    elif (
        not quoted
        and _FILE_OR_GRAPHQL_TYPE.fullmatch(value)
        and (value[:1] not in b"/~." or it.name.lower().endswith("pwd"))
    ) or (it.delimiter == b"," and _is_listed(value) and not data.startswith(b"--", it.name_start)):
        secret = False
    elif found is KeyClass.TOKEN and it.delimiter == b"=" and _is_passphrase(it.name, value):
        secret = True
    else:
        secret = bool(value) and _secret(
            found, value, data, last, quoted=quoted, name=it.name, prose=it.delimiter == b":"
        )
    return Span(first, last, kind_of_key(found), "key:" + found.value) if secret else None


def _is_part(it: _Assignment) -> bool:
    """``input[type=password]:focus``, ``arn:...:secret:name``,
    ``--from-file=password=./password.txt``
    """
    return (
        it.before in b":="
        and _PART.search(it.data, max(0, it.name_start - 128), it.name_start) is not None
    )


def _is_bare_list(it: _Assignment) -> bool:
    scope = it.data.startswith(b"::", it.mark)  # Password::min(12)
    return scope or it.typed or it.delimiter == b"," or (it.delimiter == b">" and it.before != 60)


def _is_vue_attribute(it: _Assignment) -> bool:
    """``v-model="form.password" :label=...``"""
    return (
        it.delimiter == b":"
        and it.quote_end > it.name_end
        and it.data[it.mark - 1] == 32
        and it.bare[0] == it.mark_end
    )


def _is_closing_quote(it: _Assignment) -> bool:
    """Whether the quote behind a delimiter opens no value: it closes one, or it is in a list or an
    attribute.
    """
    data, quote = it.data, it.data[it.opening : it.opened]
    if it.delimiter == b",":
        return it.quote_end == it.name_end or is_name(data, it.opened, quote)
    if it.delimiter == b">":
        return True
    if it.quote_end > it.name_end:
        return False
    if it.name_start and data[it.name_start - 1 : it.name_start] == data[it.opened - 1 : it.opened]:
        return True  # prompt='Password: '
    return quote == b'"' and is_open(data, it.name_start)  # "Database password: "


_NO_QUOTED_ASSIGNMENT: Final = (_is_closing_quote, _is_part)
_NO_BARE_ASSIGNMENT: Final = (_is_bare_list, _is_vue_attribute, _is_part)


def _quoted_value(it: _Assignment) -> tuple[int, int] | None:
    data, first = it.data, it.opened
    if (
        (it.delimiter, data[it.opening : first]) == (b":", b"'")
        and first == it.mark_end + 1
        and it.before == 32
        and _SQL_ROLE.search(data, max(0, it.name_start - 128), it.name_start)
    ):
        return None  # a variable of psql: CREATE USER x PASSWORD :'pw'
    inner = _INNER_QUOTE.match(data, first)
    if inner is not None and first - it.opening == 1:
        return inner.end(), closing(data, inner.end(), inner.group())  # "\"value\""
    return first, closing(data, first, data[it.opening : first])


def _is_listed(value: bytes) -> bool:
    """Whether it is one more word or name of a list, and no value of the name before it."""
    return _LISTED.fullmatch(value) is not None and (len(value) <= 16 or reads_like_words(value))


def _is_comment_or_element(it: _Assignment, first: int, last: int) -> bool:
    return it.data[first : first + 2] == b"//" or (
        it.delimiter == b">" and _CLOSING_ELEMENT.match(it.data, last) is None
    )


def _is_variable(it: _Assignment, first: int, last: int) -> bool:
    return (
        it.data[first] == 36
        and _VARIABLE.match(it.data, first, first + _MOST_VALUE_BYTES) is not None
    )


def _is_generic_type(it: _Assignment, first: int, last: int) -> bool:
    return (
        it.data[last : last + 1] == b"<"
        and _GENERIC_TYPE.match(it.data, first, first + _MOST_VALUE_BYTES) is not None
    )


def _is_expression(it: _Assignment, first: int, last: int) -> bool:
    limit = first + _MOST_VALUE_BYTES
    return _EXPRESSION.match(it.data, first, limit) is not None and (
        first > it.mark_end or _CODE_CALL.match(it.data, first, limit) is not None
    )


def _is_name_of_block(it: _Assignment, first: int, last: int) -> bool:
    """Whether it is a name, with what belongs to it below."""
    return it.data[last - 1 : last] == b":" and b"\n" in it.data[it.mark_end : first]


def _is_declared_type(it: _Assignment, first: int, last: int) -> bool:
    """``pub password: SecretString``"""
    return _TYPE.fullmatch(it.data, first, last) is not None or (
        _TYPE_NAME.fullmatch(it.data, first, last) is not None
        and _DECLARATION.search(it.data, max(0, it.name_start - 64), it.name_start) is not None
    )


def _is_translated_label(it: _Assignment, first: int, last: int) -> bool:
    """Whether it is the same word in another language, or a sentence about it."""
    line = it.data[first : first + 96].partition(b"\n")[0].strip()
    return (
        it.found is KeyClass.PASSWORD
        and not line[:4].decode("utf-8", "replace")[:1].islower()
        and not has_digit(line)
        and is_label(line)
    )


def _is_parameter_type(it: _Assignment, first: int, last: int) -> bool:
    """``fun login(password: CharArray)``"""
    return (
        it.data[last : last + 1] == b")" and _PLAIN_WORD.fullmatch(it.data, first, last) is not None
    )


def _is_result(it: _Assignment, first: int, last: int) -> bool:
    """``--- PASS: TestLogin``, ``signingkey = 3AA5C34371567BD2``"""
    return (
        _NAMED_RESULT.fullmatch(
            b"%b=%b" % (it.name.encode(), it.data[first : min(last, first + 256)])
        )
        is not None
    )


_NO_BARE_VALUE: Final = (
    _is_comment_or_element,
    _is_variable,
    _is_generic_type,
    _is_expression,
    _is_name_of_block,
    _is_declared_type,
    _is_translated_label,
    _is_parameter_type,
    _is_result,
)


def _bare_value(it: _Assignment) -> tuple[int, int] | None:
    data, (first, last) = it.data, it.bare
    if it.before == 123 and data.endswith(b"${", 0, it.name_start):
        # ${PASSWORD:-hunter2} holds a password, ${PASSWORD:?not set} doesn't
        if (
            default := _VARIABLE_DEFAULT.match(data, it.mark_end, it.mark_end + _MOST_VALUE_BYTES)
        ) is None:
            return None
        first, last = default.span(1)
    if any(rule(it, first, last) for rule in _NO_BARE_VALUE):
        return None
    escape = data.find(b"\\n", first, last)
    if escape > first:
        last = escape
    elif it.found in _UP_TO_WHITE_SPACE and last == it.bare[1]:
        last = whole(data, first, last)
    if it.found is KeyClass.PASSWORD and it.delimiter == b":" and "phrase" in it.name.lower():
        last = sentence(data, first, last)
    return first, last


def _class_of(it: _Assignment, extra_keys: frozenset[str], *, service_only: bool) -> KeyClass:
    name, data, name_start = it.name, it.data, it.name_start
    if extra_keys and normal_name(name) in extra_keys:
        return KeyClass.PASSWORD
    found = classify(name)
    if service_only:
        return found if found is KeyClass.SERVICE else KeyClass.NONE
    if found is KeyClass.NONE and name_start and data[name_start - 1] == 32:
        words = _WORDS_BEFORE_NAME.search(data, max(0, name_start - 32), name_start)
        if words is not None:
            found = classify((words.group() + name.encode()).decode("ascii", "replace"))
            if found in (KeyClass.SERVICE, KeyClass.WEAK):
                found = KeyClass.NONE
    return found


def _secret(
    found: KeyClass, value: bytes, data: bytes, end: int, *, quoted: bool, name: str, prose: bool
) -> bool:
    word = value[:256].partition(b"}")[0].decode("utf-8", "replace")
    if is_template(value) or normal_name(word) == normal_name(name):
        return False
    if found is KeyClass.PASSWORD:
        if quoted and is_label(value):
            return False
        if not quoted and (
            len(value) == 1
            or (value.isdigit() and len(value) < (6 if name.lower() == "pass" else 3))
        ):
            return False  # "pass: 12, fail: 0"; a field's number, a variable of a minified program
        return _is_password(value, data, end, quoted=quoted, prose=prose)
    if found is KeyClass.CODE:
        return CODE_VALUE.fullmatch(value.strip()) is not None
    if found is KeyClass.PERSONAL:
        return _PERSONAL_VALUE.fullmatch(value.strip()) is not None
    if found is KeyClass.PHRASE:
        return quoted and (value.count(b" ") >= 11 or plausible_token(value))
    if found is KeyClass.HEADER:
        if not quoted and is_code(value) and not has_digit(value):
            return False
        return (
            len(value) >= 6
            and not is_filler(value)
            and (has_digit(value) or len(value) >= 16 or not reads_like_words(value))
        )
    if not quoted and ((is_code(value) and not has_digit(value)) or called(data, end)):
        return False
    return plausible_token(
        value,
        named=found is KeyClass.SERVICE or is_service(name),
        quoted=quoted or found is KeyClass.WEAK,
    )


def service_words() -> str:
    """The services as an alternation, without the ones whose names are everyday words."""
    return "|".join(sorted(word for word in SERVICES if len(word) > 3 or word == "lob"))


def _is_passphrase(name: str, value: bytes) -> bool:
    """Whether ``secret = mango-kestrel-368`` is what people choose: the name says nothing else, and
    it has digits.
    """
    return (
        name.lower().endswith("secret")
        and len(value) >= 8
        and has_digit(value)
        and _PASSPHRASE_CHARACTERS.fullmatch(value) is not None
        and not (is_template(value) or is_filler(value) or is_stand_in(value))
    )


def _could_nest(data: bytes, groups: Groups) -> bool:
    """Whether an unquoted value holds or is a name itself."""
    first, last = groups[4]
    if first < 0 or last - first > _SHORT_VALUE_BYTES:
        return False
    if b"=" in data[first:last] or data[last : last + 1] == b"=":
        return True
    below = b"\n" in data[groups[2][1] : first]
    return below and (data[last - 1] == 58 or data[last : last + 1] == b":")


def _is_password(value: bytes, data: bytes, end: int, *, quoted: bool, prose: bool) -> bool:
    if quoted:
        return True
    if (is_code(value) and not has_digit(value)) or called(data, end):
        return False
    # "The password: use the form below" is prose; "password: hunter2" at the end of a line isn't
    return not (prose and _PLAIN_WORD.fullmatch(value) and _WORDS_AFTER.match(data, end, end + 32))


DETECTOR: Final = BuiltIn(find=find_in_assignments, between_words=True)
