"""Names and values in text: ``password = hunter2``, ``"api_key": "..."``, ``<secret>...</secret>``.

A name's class (``keys.classify``) says how much the value itself has to look like a secret. In source text and prose
the bar is higher than in decoded structure, because ``password: required`` and ``token = get_token()`` are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.bounds import called, closing, is_name, is_open, name_start_of, sentence, whole
from agenttool_otel.redaction.keys import SERVICES, KeyClass, classify, is_label, is_service, kind_of_key, normal_name
from agenttool_otel.redaction.letters import reads_like_words
from agenttool_otel.redaction.patterns import compile_pattern, spans_of
from agenttool_otel.redaction.types import Engine, Span

__all__ = ["KEYWORDS", "NAME_END", "AssignmentDetector", "service_words"]

_LATIN = (
    "passw|passphrase|passcode|passwort|pass|pwd|psw|pw|psk|secret|token|key|credential|creds?|auth|bearer|jwt|pin|otp"
    "|cvv|cvc|ssn|mnemonic|seed|recovery|sas|security_?number|national_?id|card_?(?:no|num)|iban|pat|kennwort|contrase"
    "|senha|mdp|haslo|heslo|geslo|parol|wachtwoord|adgangskode|losenord|lozinka|jelsz|sifre|salasana|kata ?sandi"
)
_OTHER = "hasło|lösenord|şifre|mật khẩu|пароль|パスワード|口令|密码|密碼|暗証番号|비밀번호|암호|รหัสผ่าน|סיסמה"
KEYWORDS = f"{_LATIN}|{_OTHER}"
"""Alternation of what the name of a secret has in it."""
NAME_END = r"[\w.\-\x{80}-\x{10ffff}]*"
"""The rest of a name behind such a word, in any script."""
_QUOTE_END = r"((?:\\*[\"'`])?\]?)"
# what may stand before a literal and leaves it one: Some("..."), SecretStr('...'), b"..."
_WRAPPED = (
    r"(?:(?:new )?(?:Some|Ok|Just|Secret|SecretStr|SecretString|SecureString|String|Password|Sensitive|Buffer|str)"
    r"(?:(?:::|\.)(?:new|from|of|valueOf))?\()?[bBuUrRfFlL@]{0,2}"
)
_PATTERN = (
    r"(?i)(?:%s)" + NAME_END + _QUOTE_END + r"(?: \d{1,2})?[ \t]*(:{1,3}=|=>|===?|\?=|=|:|>|,)[ \t]*"
    r"(?:[\r\n]+[ \t]{2,}|\\[nrt])?"
    r"(?:" + _WRAPPED + r"(\\*[\"'`])|([^\s\"'`<>(){}\[\],;&\\][^\s\"'`<>(){}\[\],;&]*))"
)
_SERVICE_PATTERN = (
    r"(?i)(?:^|[^A-Za-z])(?:%s)[\w.\- ]*((?:\\*[\"'`])?\]?)[ \t]*(:{1,3}=|=>|==?|=|:|,)[ \t]*"
    r"(?:(\\*[\"'`])|([^\s\"'`<>(){}\[\],;&\\][^\s\"'`<>(){}\[\],;&]*))"
)
# apiKey: string = "...", api_key string = "...", API_KEY: &'static str = "...", char password[] = "..."
_TYPED = (
    r"(?i)(?:"
    + KEYWORDS
    + r")\w*(?:\[\d*\]| As \w+|(?:[ \t]?:[ \t]?|[ \t])&?(?:'[a-z]+ )?[a-z_][\w.]*(?:[<\[][^=\n\"']{0,40}[>\]])?[?!]?)"
    r"()[ \t]?(:?=)[ \t]?(?:(\\*[\"'`])|(\z))"
)
_NAME_ONLY = re.compile(rb"\w+")
_INNER_QUOTE = re.compile(rb"\\{1,7}[\"']")
_CLOSES = re.compile(rb"\s{0,64}<[/!]")
_ARN = re.compile(rb"arn:[\w:/-]*\Z")
_DEFAULT = re.compile(rb"[-=]([^}\r\n]+)")
_VARIABLE = re.compile(rb"\$\{[^{}\r\n]{1,200}\}|\$\([^\r\n]{1,200}")
_LEFT_WORDS = re.compile(rb"(?:[A-Za-z]{2,14} ){1,2}\Z")
_WHOLE = frozenset((KeyClass.PASSWORD, KeyClass.HEADER, KeyClass.CODE, KeyClass.PERSONAL))
_LIMIT = 4096
_SHORT_VALUE = 64
_MOST_NESTED = 4
_SEEN_BEFORE = 128
_SEEN_AFTER = 256
_MOST_BARREN = 64
_NESTED = 512
_WORDS_AFTER = re.compile(rb"[ \t]+[A-Za-z]{2,}")
_PLAIN_WORD = re.compile(rb"[A-Za-z]{1,24}[.!?,:]?")
_EXPRESSION = re.compile(
    rb"(?:(?:await|new|yield|throw) )?[A-Za-z_][\w.]*(?:::[\w.]+)*"
    rb"(?:[(\[]|[ \t]+(?:[-+*/%|&=]+|if|and|or|is|in|not|else|for)(?=[ \t]))"
)
_GENERIC = re.compile(rb"[A-Z]\w*<[A-Za-z&'][\w, <>&':.]*>")
# a directory, a file, a type of GraphQL
_ELSE = re.compile(
    rb"[/~.].*|[\w./-]+/[\w.-]+\.(?:txt|key|pem|crt|json|ya?ml|env|cfg|conf|ini)|(?:String|Int|ID|Boolean|Float)!"
)
_TYPE = re.compile(rb"(?:[A-Z][a-z0-9]+){2,4}[?!]?")
_DECLARES = re.compile(
    rb"\b(?:pub|struct|interface|class|record|val|var|let|type|readonly|private|public)\b[^\r\n=]*\Z"
)
_ROLE = re.compile(rb"(?i)\b(?:user|role)\b[^;]*\Z")
_CHOSEN = re.compile(rb"[A-Za-z0-9!@#$%^&*_+-]+")
_CALL = re.compile(rb"[A-Za-z_][\w.]*[(\[][^\s]*[)\]]")
_CODE_VALUE = re.compile(rb"\d{3,10}")
_PERSONAL_VALUE = re.compile(rb"(?=(?:[^0-9]*\d){4})[A-Za-z0-9][A-Za-z0-9 .\-/]{4,36}")


Groups = Sequence[tuple[int, int]]
"""Start and end of a match, of what closes the name's quote, the delimiter, the opening quote, and the bare value."""


class AssignmentDetector:
    """Finds values whose name says that they are secret."""

    name = "assignments"

    def __init__(self, engine: Engine, *, extra_keys: frozenset[str] = frozenset(), pii: bool = True) -> None:
        """Compile the patterns.

        Args:
            engine: the matcher.
            extra_keys: further key names, normalised by ``keys.normal_name``.
            pii: whether names of personal numbers count.
        """
        self._pii = pii
        self._extra = extra_keys
        latin = "|".join((*(re.escape(key) for key in sorted(extra_keys) if key.isascii()), _LATIN))
        # two patterns, because one with all words is too large for the fast ways of RE2
        self._matcher = compile_pattern(_PATTERN % latin, engine)
        self._other = compile_pattern(_PATTERN % _OTHER, engine)
        self._typed = compile_pattern(_TYPED, engine)
        self._services = compile_pattern(_SERVICE_PATTERN % service_words(), engine)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of values, without their quotes."""
        matchers = (self._matcher,) if data.isascii() else (self._matcher, self._other)
        barren: set[tuple[int, bytes]] = set()
        for match in chain.from_iterable(matcher.finditer(data) for matcher in matchers):
            groups = spans_of(match, 4)
            start, end = groups[0]
            before = min(start, _SEEN_BEFORE)
            around = (before, data[start - before : end + _SEEN_AFTER])
            if around in barren:
                continue  # the very same text as before, which holds nothing: tables, and what is written to be slow
            span = self._judge(data, groups, service_only=False)
            if span is not None:
                yield span
            elif _could_nest(data, groups):
                yield from self._nested(data, groups, _MOST_NESTED)
            elif groups[3][0] < 0 and len(barren) < _MOST_BARREN:
                barren.add(around)
        if b"=" in data:
            for match in self._typed.finditer(data):
                span = self._judge(data, spans_of(match, 4), service_only=False, typed=True)
                if span is not None:
                    yield span
        for match in self._services.finditer(data):
            span = self._judge(data, spans_of(match, 4), service_only=True)
            if span is not None:
                yield span

    def _nested(self, data: bytes, groups: Groups, left: int) -> Iterable[Span]:
        """What stands in the value of a name: ``auth:`` with ``password: hunter2`` on the next line."""
        first, last = groups[4]
        part = data[first : first + _NESTED]
        inner = self._matcher.search(part)
        if inner is None or inner.start() >= last - first:
            return
        its_groups = spans_of(inner, 4)
        span = self._judge(part, its_groups, service_only=False)
        if span is not None:
            yield Span(first + span.start, first + span.end, span.kind, span.rule)
        elif left and _could_nest(part, its_groups):
            for found in self._nested(part, its_groups, left - 1):
                yield Span(first + found.start, first + found.end, found.kind, found.rule)

    def _judge(self, data: bytes, groups: Groups, *, service_only: bool, typed: bool = False) -> Span | None:
        (start, _), (name_end, quote_end), (mark, mark_end), (opening, opened), bare = groups
        name_start = name_start_of(data, start)
        if typed:
            typed_name = _NAME_ONLY.match(data, start)
            name_end = quote_end = typed_name.end() if typed_name is not None else start
        delimiter = data[mark:mark_end]
        quoted = opening >= 0
        before = data[name_start - 1] if name_start else 10
        if not quoted:
            if typed or delimiter == b"," or (delimiter == b">" and before != 60):
                return None
            if delimiter == b":" and quote_end > name_end and data[mark - 1] == 32 and bare[0] == mark_end:
                return None  # v-model="form.password" :label=...
        elif self._is_closing(data, groups, name_start):
            return None
        if before == 61 and data.endswith(b"type=", 0, name_start) and data[name_end : name_end + 1] == b"]":
            return None  # a selector: input[type=password]:focus
        if before == 58 and _ARN.search(data, max(0, name_start - 128), name_start):
            return None  # arn:aws:secretsmanager:eu-west-1:123456789012:secret:name
        name = data[name_start:name_end].decode("utf-8", "replace").strip(".- ")
        found = self._class_of(name, data, name_start, service_only=service_only)
        if (
            found is KeyClass.NONE
            or found is KeyClass.COOKIE
            or (found is KeyClass.HEADER and "authorization" in name.lower())
        ):
            return None  # headers.py knows schemes and pairs
        if quoted:
            if (
                delimiter == b":"
                and opened == mark_end + 1
                and before == 32
                and _ROLE.search(data, max(0, name_start - 128), name_start)
            ):
                return None  # a variable of psql: CREATE USER x PASSWORD :'pw'
            first = opened
            inner = _INNER_QUOTE.match(data, first)
            if inner is not None and opened - opening == 1:
                first = inner.end()  # "\"value\""
                last = closing(data, first, inner.group())
            else:
                last = closing(data, first, data[opening:first])
        else:
            first, last = bare
            if data[first : first + 2] == b"//" or (delimiter == b">" and not _CLOSES.match(data, last)):
                return None
            if before == 123 and data.endswith(b"${", 0, name_start):
                # ${PASSWORD:-hunter2} holds a password, ${PASSWORD:?not set} doesn't
                default = _DEFAULT.match(data, mark_end, mark_end + _LIMIT)
                if default is None:
                    return None
                first, last = default.span(1)
            elif data[first] == 36 and _VARIABLE.match(data, first, first + _LIMIT):
                return None
            if data[last : last + 1] == b"<" and _GENERIC.match(data, first, first + _LIMIT):
                return None
            if _EXPRESSION.match(data, first, first + _LIMIT) and (
                first > mark_end or _CALL.match(data, first, first + _LIMIT)
            ):
                return None
            if data[last - 1 : last] == b":" and b"\n" in data[mark_end:first]:
                return None  # a name, with what belongs to it below
            if _TYPE.fullmatch(data, first, last) and _DECLARES.search(data, max(0, name_start - 64), name_start):
                return None  # a type: pub password: SecretString
            if (
                found is KeyClass.PASSWORD
                and delimiter == b":"
                and data[first:last].istitle()
                and is_label(data[first:last])
            ):
                return None  # the same word in another language
            if data[last : last + 1] == b")" and _PLAIN_WORD.fullmatch(data, first, last):
                return None  # a type: fun login(password: CharArray)
            escape = data.find(b"\\n", first, last)
            if escape > first:
                last = escape
            elif found in _WHOLE and last == bare[1]:
                last = whole(data, first, last)
            if found is KeyClass.PASSWORD and delimiter == b":" and "phrase" in name.lower():
                last = sentence(data, first, last)
        value = data[first:last]
        if not quoted and (delimiter.startswith(b"==") or value[:1] == b"="):
            # a comparison of names in source text, unless what is behind it can only be a credential
            return Span(first, last, kind_of_key(found), "key:" + found.value) if inert.plausible_token(value) else None
        if delimiter == b"," and value.isalpha() and len(value) <= 16 and not data.startswith(b"--", name_start):
            return None  # a list of words
        if not quoted and _ELSE.fullmatch(value) is not None and _is_else(name, value):
            return None
        if found is KeyClass.TOKEN and delimiter == b"=" and _is_passphrase(name, value):
            return Span(first, last, kind_of_key(found), "key:" + found.value)
        if not value or not self._secret(found, value, data, last, quoted=quoted, name=name, prose=delimiter == b":"):
            return None
        return Span(first, last, kind_of_key(found), "key:" + found.value)

    @staticmethod
    def _is_closing(data: bytes, groups: Groups, name_start: int) -> bool:
        """Whether the quote behind a delimiter opens no value: it closes one, or it is in a list or an attribute."""
        _, (name_end, quote_end), (mark, mark_end), (opening, opened), _ = groups
        delimiter = data[mark:mark_end]
        if delimiter == b",":
            return quote_end == name_end or is_name(data, opened, data[opening:opened])
        if delimiter == b">":
            return True
        if quote_end > name_end:
            return False
        if name_start and data[name_start - 1 : name_start] == data[opened - 1 : opened]:
            return True  # prompt='Password: '
        return data[opening:opened] == b'"' and is_open(data, name_start)  # "Database password: "

    def _class_of(self, name: str, data: bytes, name_start: int, *, service_only: bool) -> KeyClass:
        if self._extra and any(_ends_with_name(name, key) for key in self._extra):
            return KeyClass.PASSWORD
        found = classify(name)
        if service_only:
            return found if found is KeyClass.SERVICE else KeyClass.NONE
        if found is KeyClass.NONE and name_start and data[name_start - 1] == 32:
            words = _LEFT_WORDS.search(data, max(0, name_start - 32), name_start)
            if words is not None:
                found = classify((words.group() + name.encode()).decode("ascii", "replace"))
                if found in (KeyClass.SERVICE, KeyClass.WEAK):
                    found = KeyClass.NONE
        if found is KeyClass.PERSONAL and not self._pii:
            return KeyClass.NONE
        return found

    def _secret(
        self, found: KeyClass, value: bytes, data: bytes, end: int, *, quoted: bool, name: str, prose: bool
    ) -> bool:
        if inert.is_template(value):
            return False
        if found is KeyClass.PASSWORD:
            if quoted and is_label(value):
                return False
            if not quoted and value.isdigit() and len(value) < (6 if name.lower() == "pass" else 3):
                return False  # "pass: 12, fail: 0"; a field's number
            return _is_password(value, data, end, quoted=quoted, prose=prose)
        if found is KeyClass.CODE:
            return _CODE_VALUE.fullmatch(value.strip()) is not None
        if found is KeyClass.PERSONAL:
            return _PERSONAL_VALUE.fullmatch(value.strip()) is not None
        if found is KeyClass.PHRASE:
            return quoted and value.count(b" ") >= 11
        if found is KeyClass.HEADER:
            if not quoted and inert.is_code(value) and not inert.has_digit(value):
                return False
            return (
                len(value) >= 6
                and not inert.is_filler(value)
                and (inert.has_digit(value) or len(value) >= 16 or not reads_like_words(value))
            )
        if not quoted and ((inert.is_code(value) and not inert.has_digit(value)) or called(data, end)):
            return False
        return inert.plausible_token(value, named=found is KeyClass.SERVICE or is_service(name), quoted=quoted)


def service_words() -> str:
    """The services as an alternation, without the ones whose names are everyday words."""
    return "|".join(sorted(word for word in SERVICES if len(word) > 3 or word == "lob"))


def _is_else(name: str, value: bytes) -> bool:
    """Whether a value of such a shape is no password: a relative name of a file, a type, the working directory."""
    return value[:1] not in b"/~." or name.lower().endswith("pwd")


def _is_passphrase(name: str, value: bytes) -> bool:
    """Whether ``secret = mango-kestrel-368`` is what people choose: the name says nothing else, and it has digits."""
    return (
        name.lower().endswith("secret")
        and len(value) >= 8
        and inert.has_digit(value)
        and _CHOSEN.fullmatch(value) is not None
        and not (inert.is_template(value) or inert.is_filler(value) or inert.is_stand_in(value))
    )


def _could_nest(data: bytes, groups: Groups) -> bool:
    """Whether an unquoted value holds or is a name itself."""
    first, last = groups[4]
    if first < 0 or last - first > _SHORT_VALUE:
        return False
    if b"=" in data[first:last] or data[last : last + 1] == b"=":
        return True
    below = b"\n" in data[groups[2][1] : first]
    return below and (data[last - 1] == 58 or data[last : last + 1] == b":")


def _ends_with_name(name: str, key: str) -> bool:
    return normal_name(name) == key


def _is_password(value: bytes, data: bytes, end: int, *, quoted: bool, prose: bool) -> bool:
    if quoted:
        return True
    if inert.is_code(value) and not inert.has_digit(value):
        return False
    if called(data, end):
        return False
    # "The password: use the form below" is prose; "password: hunter2" at the end of a line isn't
    return not (prose and _PLAIN_WORD.fullmatch(value) and _WORDS_AFTER.match(data, end, end + 32))
