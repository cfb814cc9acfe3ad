"""Names and values in text: ``password = hunter2``, ``"api_key": "..."``, ``<secret>...</secret>``.

A name's class (``keys.classify``) sets how much the value itself has to look like a secret. In
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
from agenttool_otel.redaction.patterns import MATCH, compile_pattern, find_all, spans_of
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

PASSWORD_WORDS: Final = r"passw|passphrase|passcode|passwort|pass|pwd|psw|pw|psk"
"""``DB_PASSWORD``, ``psk``"""
TOKEN_WORDS: Final = r"secret|token|key|credential|creds?|auth|bearer|jwt"
"""``apiKey``, ``AUTH``"""
CODE_WORDS: Final = r"pin|otp|cvv|cvc|ssn|mnemonic|seed|recovery|sas"
"""Codes, and phrases of wallets."""
NUMBER_WORDS: Final = r"security_?number|national_?id|card_?(?:no|num)|iban|pat(?:[\d_.-]|\b)"
"""Numbers of persons and cards; ``pat`` (personal access token) only as a word: ``path``."""
PASSWORD_IN_THE_WEST: Final = r"kennwort|contrase|senha|mdp|wachtwoord|adgangskode|losenord"
"""``contrasena_db``, ``mdp`` (mot de passe)"""
PASSWORD_IN_THE_EAST: Final = r"haslo|heslo|geslo|parol|lozinka|jelsz|sifre|salasana|kata ?sandi"
"""``haslo_bazy``, ``sifre``"""
_LATIN = "|".join(
    (
        PASSWORD_WORDS,
        TOKEN_WORDS,
        CODE_WORDS,
        NUMBER_WORDS,
        PASSWORD_IN_THE_WEST,
        PASSWORD_IN_THE_EAST,
    )
)
_OTHER = "hasło|lösenord|şifre|mật khẩu|пароль|パスワード|口令|密码|密碼|暗証番号|비밀번호|암호|รหัสผ่าน|סיסמה"
KEYWORDS = f"{_LATIN}|{_OTHER}"
"""Alternation of what the name of a secret has in it."""
NAME_END = r"[\w.\-\x{80}-\x{10ffff}]*"
"""The rest of a name behind such a word, in any script."""
NAME_CLOSES: Final = r"""((?:\\*["'`])?\]?)"""
"""What closes a name: ``"db_password"``, ``["db_password"]``."""
DELIMITER: Final = r"(?: \d{1,2})?[ \t]*(:{1,3}=|=>|===?|\?=|=|:|>|,)[ \t]*"
"""What stands between a name and its value, as group 1; ``Password 1: ...``."""
NEW_LINE: Final = r"(?:[\r\n]+[ \t]{2,}|\\[nrt])?"
"""A value may stand on the next line, indented; or behind an escaped break."""
WRAPPING_TYPES: Final = (
    r"Some|Ok|Just|Secret|SecretStr|SecretString|SecureString|String|Password"
    r"|Sensitive|Buffer|str|bytes|bytearray"
)
"""``Some("hunter2")``, ``new Password("hunter2")``"""
DECODERS: Final = (
    r"\[\](?:byte|rune)"
    r"|(?:\w+\.){1,3}(?:GetBytes|encode|b64decode|fromhex|unhexlify|DecodeString)"
)
"""``[]byte("hunter2")``, ``base64.b64decode("aHVudGVyMg==")``"""
FACTORIES: Final = r"(?:(?:::|\.)(?:new|from|of|valueOf))?"
"""``Password::new("hunter2")``, ``Buffer.from("hunter2")``"""
WRAPPERS: Final = rf"(?:(?:new )?(?:{WRAPPING_TYPES}|{DECODERS}){FACTORIES}\()?"
"""A call around the value: ``SecretStr("...``, ``Some("...``, ``new Password("...``."""
BARE_VALUE: Final = r"""([^\s"'`<>(){}\[\],;&\\][^\s"'`<>(){}\[\],;&]*)"""
"""A value without quotes, as a group."""
_PATTERN = (
    r"(?i)(?:<NAMES>)"
    rf"{NAME_END}{NAME_CLOSES}{DELIMITER}{NEW_LINE}"
    rf"""(?:{WRAPPERS}[bBuUrRfFlL@]{{0,2}}(\\*["'`])|{BARE_VALUE})"""
)
_OTHER_PATTERN = _PATTERN.replace("<NAMES>", _OTHER)
_SERVICE_PATTERN = (
    r"(?i)(?:^|[^A-Za-z])(?:<NAMES>)"
    rf"[\w.\- ]*{NAME_CLOSES}[ \t]*(:{{1,3}}=|=>|==?|=|:|,)[ \t]*"
    rf"""(?:(\\*["'`])|{BARE_VALUE})"""
)
DECLARED_TYPE: Final = (
    r"(?:\[\d*\]| As \w+"
    r"|(?:[ \t]?:[ \t]?|[ \t])&?(?:'[a-z]+ )?[a-z_][\w.]*(?:[<\[][^=\n\"']{0,40}[>\]])?[?!]?)"
)
"""The type behind a name: ``password[64]``, ``Token As String``, ``api_key: &'static str``."""
# apiKey: string = "...", api_key string = "...", char password[] = "..."
_TYPED_PATTERN = (
    rf"""(?i)(?:<NAMES>)\w*{DECLARED_TYPE}()[ \t]?(:?=)[ \t]?(?:(\\*["'`])|(\z))""".replace(
        "<NAMES>", KEYWORDS
    )
)
_NAME_ONLY = re.compile(rb"\w+")
_INNER_QUOTE = re.compile(rb"\\{1,7}[\"']")
_CLOSING_ELEMENT = re.compile(rb"\s{0,64}<[/!]")
_PART = re.compile(rb"(?:arn:[\w:/-]*:|[-_]file=|\[type=)\Z")
_VARIABLE_DEFAULT = re.compile(rb"[-=]([^}\r\n]+)")
BRACED_VARIABLE: Final = r"\$\{[^{}\r\n]{1,200}\}"
"""``${DB_PASSWORD}``"""
OUTPUT_OF_COMMAND: Final = r"\$\([^\r\n]{1,200}"
"""``$(pass show db)``"""
MEMBER_OF_VARIABLE: Final = (
    r"\$\w{1,40}(?:->)?(?:\{[A-Za-z_]{1,60}\}|(?:\[\W?[A-Za-z_]{1,60}\W?\])+)(?:[\s;,)]|\Z)"
)
"""``$request->{password}``, ``$config["password"]``"""
_VARIABLE = re.compile(f"{BRACED_VARIABLE}|{OUTPUT_OF_COMMAND}|{MEMBER_OF_VARIABLE}".encode())
_WORDS_BEFORE_NAME = re.compile(rb"(?:[A-Za-z]{2,14} ){1,2}\Z")
_UP_TO_WHITE_SPACE = frozenset(
    (KeyClass.PASSWORD, KeyClass.HEADER, KeyClass.CODE, KeyClass.PERSONAL)
)
_LINE_FEED: Final = 10
_SPACE: Final = 32
_DOLLAR: Final = 36
_LESS_THAN: Final = 60
_BRACE: Final = 123
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
TEST_THAT_PASSED: Final = (
    r"PASS=(?i:tests?[A-Z_:./-].*|[A-Za-z]{1,6}=(?:\{.*)?|\S*(?:::|/|tests?\b)\S*"
    r"|[a-z]+(?:[-_.][a-z]+)*)"
)
"""``PASS: TestLogin``, with its delimiter as ``=``."""
SIGNING_KEY: Final = (
    r"(?:(?i:user\.)signing[kK]ey|signingkey)=(?:[0-9A-F]{8}|[0-9A-F]{16}|[0-9A-F]{40}"
    r"|~?/(?:[\w.-]+/)+[\w.-]+|key::.*)"
)
"""The identifier or file of what git signs with."""
_NAMED_RESULT = re.compile(f"{TEST_THAT_PASSED}|{SIGNING_KEY}".encode())
NAME_IN_CODE: Final = r"(?:(?:await|new|yield|throw) )?[A-Za-z_][\w.]*(?:::[\w.]+)*"
"""``await vault.read``, ``Config::load``"""
CALL_OR_MEMBER: Final = r"[(\[]|'s (?=pass|secret|token|key|cred)|(?<=[a-z])[!?]\(\""
"""What makes a name an expression: ``read(``, ``user's password``, ``load!("``."""
OPERATOR: Final = r"[ \t]+(?:[-+*/%|&=]+|if|and|or|is|in|not|else|for)"
"""``token == other``, ``token if ok else None``"""
READ_OF_ENVIRONMENT: Final = r"[a-z]+:get_?env\("
"""``env:get_env(`` of Erlang."""
_EXPRESSION = re.compile(
    f"{NAME_IN_CODE}(?:{CALL_OR_MEMBER}|{OPERATOR}(?=[ \t]))|{READ_OF_ENVIRONMENT}".encode()
)
_GENERIC_TYPE = re.compile(rb"[A-Z]\w*<[A-Za-z&'][\w, <>&':.]*>")
_FILE_OR_GRAPHQL_TYPE = re.compile(
    rb"[/~.].*|[\w./-]+/[\w.-]+\.(?:txt|key|pem|crt|json|ya?ml|env|cfg|conf|ini)"
    rb"|(?:String|Int|ID|Boolean|Float)!"
)
LAST_WORDS_OF_TYPES: Final = (
    r"Str|String|Bytes|Field|Type|Array|Value|Token|Secret|Password"
    r"|Credentials?|Provider|Config|Schema|Model|Input|Node"
)
"""``SecretString``, ``TokenProvider``"""
_TYPE = re.compile(rf"(?:[A-Z][a-z]+){{1,4}}(?:{LAST_WORDS_OF_TYPES})[?!]?".encode())
_TYPE_NAME = re.compile(rb"(?:[A-Z][a-z0-9]+){2,4}[?!]?")
DECLARATIONS: Final = (
    r"\b(?:pub|struct|interface|class|record|val|var|let|type|readonly|private|public)\b[^\r\n=]*\Z"
)
"""A line that declares a member: ``pub``."""
FUNCTION: Final = (
    r"\b(?:def|fn|func|fun|function|sub|constructor)\b[ \t]+(?:\([^\r\n()]{0,30}\)[ \t]*)?\w{1,40}"
)
"""``def login``, ``func (s *Server) login``"""
OPEN_PARAMETERS: Final = r"(?:[<\[][^\r\n()]{0,30})?\([^=)]{0,60}\Z"
"""``(user: str,``, ``<T>(user,``"""
PARAMETERS: Final = FUNCTION + OPEN_PARAMETERS
"""The open parameters of a function: ``def login(user: str,``."""
_DECLARATION = re.compile(f"{DECLARATIONS}|{PARAMETERS}".encode())
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
        span = _judge(data, groups, extra_keys)
        if span is not None:
            yield span
        elif _could_nest(data, groups):
            yield from _nested(data, groups, extra_keys, _MOST_NESTED)
        elif len(fruitless) < _MOST_REMEMBERED and _ends_near(data, groups):
            fruitless.add(around)
    yield from _find_typed(data, extra_keys)
    yield from _find_of_services(data, extra_keys)


def _find_typed(data: bytes, extra_keys: frozenset[str]) -> Iterable[Span]:
    """Spans of values of names with a type: ``apiKey: string = "..."``."""
    if b"=" not in data:
        return
    for match in find_all(_TYPED_PATTERN, data, 2 * MATCH):
        span = _judge(data, spans_of(match, 4), extra_keys, typed=True)
        if span is not None:
            yield span


def _find_of_services(data: bytes, extra_keys: frozenset[str]) -> Iterable[Span]:
    """Spans of values under the name of a service: ``SENDGRID = "..."``."""
    for match in find_all(_services_pattern(), data):
        span = _judge(data, spans_of(match, 4), extra_keys, service_only=True)
        if span is not None:
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
        whole_match, name_closes, delimiter, opener, self.bare = groups
        start, _ = whole_match
        self.name_end, self.quote_end = name_closes
        self.mark, self.mark_end = delimiter
        self.opening, self.opened = opener
        self.data = data
        self.typed = typed
        self.name_start = name_start_of(data, start)
        if typed:
            # of "apiKey: string =" the match holds the type, too
            name = _NAME_ONLY.match(data, start)
            self.name_end = start if name is None else name.end()
            self.quote_end = self.name_end
        # the beginning of a text is as that of a line
        self.before = data[self.name_start - 1] if self.name_start else _LINE_FEED
        self.delimiter = data[self.mark : self.mark_end]
        self.name = data[self.name_start : self.name_end].decode("utf-8", "replace").strip(".- ")
        self.found = KeyClass.NONE

    @property
    def quoted(self) -> bool:
        """Whether the value stands in quotes."""
        return self.opening >= 0

    @property
    def opener(self) -> bytes:
        """The quote that opens the value, which may be escaped; empty for a bare value."""
        return self.data[self.opening : self.opened]

    def follows(self, pattern: re.Pattern[bytes], reach: int) -> bool:
        """Whether a pattern, which ends in ``\\Z``, is found right before the name.

        Args:
            pattern: the pattern.
            reach: how many bytes before the name are looked at.
        """
        first = max(0, self.name_start - reach)
        return pattern.search(self.data, first, self.name_start) is not None


def _judge(
    data: bytes,
    groups: Groups,
    extra_keys: frozenset[str],
    *,
    service_only: bool = False,
    typed: bool = False,
) -> Span | None:
    """The secret value of one assignment, if it has one."""
    assignment = _Assignment(data, groups, typed)
    assignment.found = _class_of(assignment, extra_keys, service_only=service_only)
    if assignment.found in (KeyClass.NONE, KeyClass.COOKIE):
        return None
    # headers.py reads schemes and pairs
    if assignment.found is KeyClass.HEADER and "authorization" in assignment.name.lower():
        return None
    if any(
        rule(assignment)
        for rule in (_NO_QUOTED_ASSIGNMENT if assignment.quoted else _NO_BARE_ASSIGNMENT)
    ):
        return None
    bounds = _quoted_value(assignment) if assignment.quoted else _bare_value(assignment)
    if bounds is None:
        return None
    first, last = bounds
    if not _holds_secret(assignment, first, last):
        return None
    return Span(first, last, kind_of_key(assignment.found), "key:" + assignment.found.value)


def _holds_secret(assignment: _Assignment, first: int, last: int) -> bool:
    """Whether the value of an assignment is a secret, by its delimiter, its name and itself."""
    value = assignment.data[first:last]
    # a comparison of names in source text, unless what is behind it can only be a credential
    if not assignment.quoted and (assignment.delimiter.startswith(b"==") or value[:1] == b"="):
        return plausible_token(value)
    if _is_file_or_type(assignment, value):
        return False
    # --password,hunter2 is an option with its value
    is_option = assignment.data.startswith(b"--", assignment.name_start)
    if assignment.delimiter == b"," and not is_option and _is_listed(value):
        return False
    if (
        assignment.found is KeyClass.TOKEN
        and assignment.delimiter == b"="
        and _is_passphrase(assignment.name, value)
    ):
        return True
    return bool(value) and _secret(assignment, value, last)


def _is_file_or_type(assignment: _Assignment, value: bytes) -> bool:
    """``password_file: /run/secrets/db``, ``password: String!``"""
    if assignment.quoted or not _FILE_OR_GRAPHQL_TYPE.fullmatch(value):
        return False
    # PWD=/home/bob is a directory, api_key=/x9... may be a key
    return value[:1] not in b"/~." or assignment.name.lower().endswith("pwd")


def _is_part(assignment: _Assignment) -> bool:
    """``input[type=password]:focus``, ``arn:...:secret:name``,
    ``--from-file=password=./password.txt``
    """
    if assignment.before not in b":=":
        return False
    return assignment.follows(_PART, 128)


def _is_bare_list(assignment: _Assignment) -> bool:
    # Password::min(12)
    if assignment.data.startswith(b"::", assignment.mark):
        return True
    # password, email
    if assignment.typed or assignment.delimiter == b",":
        return True
    # <password>hunter2</password> is an element, password > 3 is none
    return assignment.delimiter == b">" and assignment.before != _LESS_THAN


def _is_vue_attribute(assignment: _Assignment) -> bool:
    """``v-model="form.password" :label=...``"""
    if assignment.delimiter != b":" or assignment.quote_end == assignment.name_end:
        return False
    value_start, _ = assignment.bare
    if assignment.data[assignment.mark - 1] != _SPACE:
        return False
    return value_start == assignment.mark_end


def _is_closing_quote(assignment: _Assignment) -> bool:
    """Whether the quote behind a delimiter opens no value: it closes one, or it is in a list or an
    attribute.
    """
    data = assignment.data
    opener = assignment.opener
    name_start = assignment.name_start
    is_name_quoted = assignment.quote_end > assignment.name_end
    if assignment.delimiter == b",":
        # "--password", "hunter2" is an option with its value, "password", "user": a name
        return not is_name_quoted or is_name(data, assignment.opened, opener)
    # <a title="password">"..."
    if assignment.delimiter == b">":
        return True
    if is_name_quoted:
        return False
    # prompt='Password: '
    if name_start and data[name_start - 1] == opener[-1]:
        return True
    # "Database password: "
    return opener == b'"' and is_open(data, name_start)


_NO_QUOTED_ASSIGNMENT: Final = (_is_closing_quote, _is_part)
_NO_BARE_ASSIGNMENT: Final = (_is_bare_list, _is_vue_attribute, _is_part)


def _is_variable_of_psql(assignment: _Assignment) -> bool:
    """``CREATE USER bob PASSWORD :'pw'``"""
    if assignment.delimiter != b":" or assignment.opener != b"'":
        return False
    if assignment.opened != assignment.mark_end + 1 or assignment.before != _SPACE:
        return False
    return assignment.follows(_SQL_ROLE, 128)


def _quoted_value(assignment: _Assignment) -> tuple[int, int] | None:
    if _is_variable_of_psql(assignment):
        return None
    data = assignment.data
    first = assignment.opened
    opener = assignment.opener
    # "\"hunter2\""
    inner = _INNER_QUOTE.match(data, first)
    if inner is not None and len(opener) == 1:
        return inner.end(), closing(data, inner.end(), inner.group())
    return first, closing(data, first, opener)


def _is_listed(value: bytes) -> bool:
    """Whether it is one more word or name of a list, and no value of the name before it."""
    if _LISTED.fullmatch(value) is None:
        return False
    return len(value) <= 16 or reads_like_words(value)


def _is_comment_or_element(assignment: _Assignment, first: int, last: int) -> bool:
    """``token: // the user's``, ``<password><value>``"""
    data = assignment.data
    if data.startswith(b"//", first):
        return True
    return assignment.delimiter == b">" and _CLOSING_ELEMENT.match(data, last) is None


def _is_variable(assignment: _Assignment, first: int, last: int) -> bool:
    """``password = $config["password"]``"""
    if assignment.data[first] != _DOLLAR:
        return False
    return _VARIABLE.match(assignment.data, first, first + _MOST_VALUE_BYTES) is not None


def _is_generic_type(assignment: _Assignment, first: int, last: int) -> bool:
    """``password: Option<String>``"""
    if assignment.data[last : last + 1] != b"<":
        return False
    return _GENERIC_TYPE.match(assignment.data, first, first + _MOST_VALUE_BYTES) is not None


def _is_expression(assignment: _Assignment, first: int, last: int) -> bool:
    """``token = await vault.read("db")``; right behind the delimiter only a complete call is one."""
    data = assignment.data
    limit = first + _MOST_VALUE_BYTES
    if _EXPRESSION.match(data, first, limit) is None:
        return False
    if first > assignment.mark_end:
        return True
    # password=get("db"), but not password=hunter(2x
    return _CODE_CALL.match(data, first, limit) is not None


def _is_name_of_block(assignment: _Assignment, first: int, last: int) -> bool:
    """Whether it is a name, with what belongs to it below."""
    if assignment.data[last - 1 : last] != b":":
        return False
    return b"\n" in assignment.data[assignment.mark_end : first]


def _is_declared_type(assignment: _Assignment, first: int, last: int) -> bool:
    """``pub password: SecretString``"""
    data = assignment.data
    if _TYPE.fullmatch(data, first, last) is not None:
        return True
    if _TYPE_NAME.fullmatch(data, first, last) is None:
        return False
    return assignment.follows(_DECLARATION, 64)


def _is_translated_label(assignment: _Assignment, first: int, last: int) -> bool:
    """Whether it is the same word in another language, or a sentence about it."""
    if assignment.found is not KeyClass.PASSWORD:
        return False
    line = assignment.data[first : first + 96].partition(b"\n")[0].strip()
    # Password: Mot de passe
    first_letter = line[:4].decode("utf-8", "replace")[:1]
    if first_letter.islower() or has_digit(line):
        return False
    return is_label(line)


def _is_parameter_type(assignment: _Assignment, first: int, last: int) -> bool:
    """``fun login(password: CharArray)``"""
    if assignment.data[last : last + 1] != b")":
        return False
    return _PLAIN_WORD.fullmatch(assignment.data, first, last) is not None


def _is_result(assignment: _Assignment, first: int, last: int) -> bool:
    """``--- PASS: TestLogin``, ``signingkey = 3AA5C34371567BD2``"""
    value = assignment.data[first : min(last, first + 256)]
    named = assignment.name.encode() + b"=" + value
    return _NAMED_RESULT.fullmatch(named) is not None


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


def _bare_value(assignment: _Assignment) -> tuple[int, int] | None:
    data = assignment.data
    first, last = assignment.bare
    if assignment.before == _BRACE and data.endswith(b"${", 0, assignment.name_start):
        # ${PASSWORD:-hunter2} holds a password, ${PASSWORD:?not set} doesn't
        limit = assignment.mark_end + _MOST_VALUE_BYTES
        default = _VARIABLE_DEFAULT.match(data, assignment.mark_end, limit)
        if default is None:
            return None
        first, last = default.span(1)
    if any(rule(assignment, first, last) for rule in _NO_BARE_VALUE):
        return None
    # password=hunter2\nuser=bob
    escape = data.find(b"\\n", first, last)
    if escape > first:
        last = escape
    elif assignment.found in _UP_TO_WHITE_SPACE and last == assignment.bare[1]:
        last = whole(data, first, last)
    # passphrase: correct horse battery staple
    is_passphrase = assignment.found is KeyClass.PASSWORD and "phrase" in assignment.name.lower()
    if is_passphrase and assignment.delimiter == b":":
        last = sentence(data, first, last)
    return first, last


def _class_of(
    assignment: _Assignment, extra_keys: frozenset[str], *, service_only: bool
) -> KeyClass:
    name, data, name_start = assignment.name, assignment.data, assignment.name_start
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


def _secret(assignment: _Assignment, value: bytes, end: int) -> bool:
    """Whether a value that isn't empty is a secret, by the class of its name.

    Args:
        assignment: the name and what stands behind it.
        value: its value.
        end: one past the value's last byte.
    """
    word = value[:256].partition(b"}")[0].decode("utf-8", "replace")
    # password = ${password}
    if is_template(value) or normal_name(word) == normal_name(assignment.name):
        return False
    match assignment.found:
        case KeyClass.PASSWORD:
            return _is_chosen(assignment, value, end)
        case KeyClass.CODE:
            return CODE_VALUE.fullmatch(value.strip()) is not None
        case KeyClass.PERSONAL:
            return _PERSONAL_VALUE.fullmatch(value.strip()) is not None
        case KeyClass.PHRASE:
            return assignment.quoted and (value.count(b" ") >= 11 or plausible_token(value))
        case KeyClass.HEADER:
            return _is_header_value(assignment, value)
    if not assignment.quoted and _goes_on_as_code(assignment, value, end):
        return False
    return plausible_token(
        value,
        named=assignment.found is KeyClass.SERVICE or is_service(assignment.name),
        quoted=assignment.quoted or assignment.found is KeyClass.WEAK,
    )


def _is_chosen(assignment: _Assignment, value: bytes, end: int) -> bool:
    """Whether a value is a password that people choose."""
    if assignment.quoted:
        return not is_label(value)
    # a variable of a minified program
    if len(value) == 1:
        return False
    # "pass: 12, fail: 0"; a field's number
    least_digits = 6 if assignment.name.lower() == "pass" else 3
    if value.isdigit() and len(value) < least_digits:
        return False
    if _goes_on_as_code(assignment, value, end):
        return False
    # "The password: use the form below" is prose; "password: hunter2" at the end of a line isn't
    if assignment.delimiter != b":" or not _PLAIN_WORD.fullmatch(value):
        return True
    return _WORDS_AFTER.match(assignment.data, end, end + 32) is None


def _is_header_value(assignment: _Assignment, value: bytes) -> bool:
    if not assignment.quoted and is_code(value) and not has_digit(value):
        return False
    if len(value) < 6 or is_filler(value):
        return False
    return has_digit(value) or len(value) >= 16 or not reads_like_words(value)


def _goes_on_as_code(assignment: _Assignment, value: bytes, end: int) -> bool:
    """``config.password``, ``get_token(``"""
    if is_code(value) and not has_digit(value):
        return True
    return called(assignment.data, end)


def service_words() -> str:
    """The services as an alternation, without the ones whose names are everyday words."""
    return "|".join(sorted(word for word in SERVICES if len(word) > 3 or word == "lob"))


def _is_passphrase(name: str, value: bytes) -> bool:
    """Whether ``secret = mango-kestrel-368`` is what people choose: the name means nothing else, and
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


DETECTOR: Final = BuiltIn(find=find_in_assignments, between_words=True)
