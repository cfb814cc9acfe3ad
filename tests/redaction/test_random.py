"""Random secrets: a bound that refuses one token in a hundred leaks one token in a hundred.

The rows of a corpus are few; these tests make as many secrets as they need, from the formats
themselves.
"""

from __future__ import annotations

import base64
import json
import random
import re
import statistics
import string
from collections.abc import Callable
from functools import cache
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pattern_texts import pattern_text

from agenttool_otel.redaction import default_redactor
from agenttool_otel.redaction.detectors.keywords import KeywordIndex
from agenttool_otel.redaction.detectors.token_formats import TOKEN_RULES, TokenRule
from agenttool_otel.redaction.plausibility import entropy, is_path
from agenttool_otel.redaction.words import reads_like_words

DIGITS, LOWER, UPPER = string.digits, string.ascii_lowercase, string.ascii_uppercase
ALPHABETS: Final = {
    "hex": DIGITS + "abcdef",
    "base32": UPPER + "234567",
    "base36": LOWER + DIGITS,
    "base62": LOWER + UPPER + DIGITS,
    "base64": LOWER + UPPER + DIGITS + "+/",
    "letters": LOWER + UPPER,
    "lower": LOWER,
}
PLACES: Final[dict[str, Callable[[str], str]]] = {
    "env": lambda value: f"API_KEY={value}\n",
    "shell": lambda value: f'export ACCESS_TOKEN="{value}"',
    "yaml": lambda value: f"client_secret: {value}\n",
    "json": lambda value: json.dumps({"api_key": value, "page": 2}),
    "json in json": lambda value: json.dumps({"body": json.dumps({"api_key": value})}),
    "repr": lambda value: repr({"api_key": value}),
    "toml": lambda value: f'secret_key = "{value}"',
    "service": lambda value: f'zendesk_token = "{value}"',
    "bearer": lambda value: f"Authorization: Bearer {value}\n",
    "header": lambda value: f"X-API-Key: {value}",
    "cookie": lambda value: f"Cookie: sessionid={value}; theme=dark",
    "query": lambda value: f"GET https://example.com/cb?access_token={value}&page=2",
    "userinfo": lambda value: f"postgresql://app:{value}@db.internal:5432/main",
    "flag": lambda value: f"tool --token={value} --verbose",
    "curl": lambda value: f"curl -u admin:{value} https://api.example.com/",
    "password": lambda value: f"DB_PASSWORD={value}\n",
    "said": lambda value: f"the password is {value}, thanks",
}
CONTEXTS: Final = {
    "mailgun_signing_key": "mailgun ",
    "discord_bot_token": "discord ",
    "yandex_key": "yandex ",
}
NAMES: Final = (
    "getUserById", "configuration.get", "access_token_url", "OAuth2PasswordBearer", "requestInterceptor",
    "SecretManagerServiceClient", "environment_variable", "generateRandomString", "required", "authentication",
    "HTTPResponseFromXMLFile", "kubernetes_namespace", "TokenizerFastTokenizer", "application/json", "unauthorized",
    "placeholder-for-documentation", "DefaultAzureCredential", "psycopg.connection", "NotImplementedError",
)  # fmt: skip


def _tokens(rule: TokenRule, count: int) -> list[tuple[str, str]]:
    """Random texts that the rule's pattern describes, each with the secret in it."""
    source = random.Random(rule.id)
    found: list[tuple[str, str]] = []
    while len(found) < count:
        text = pattern_text(rule.pattern, source)
        match = re.search(rule.pattern, text)
        # some of Slack's patterns leave the lengths open; its tokens are long
        if match is not None and (len(match[1]) >= 40 or (rule.kind or rule.id) != "slack_token"):
            found.append((text, match[1]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rule", TOKEN_RULES, ids=lambda rule: rule.id)
def test_random_tokens_of_every_format_are_found(rule: TokenRule) -> None:
    redactor = default_redactor()
    for text, secret in _tokens(rule, 60):
        assert secret not in redactor.redact_text(CONTEXTS.get(rule.id, "") + text).value


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [rule for rule in TOKEN_RULES if rule.entropy], ids=lambda rule: rule.id
)
def test_no_entropy_bound_is_near_what_random_tokens_have(rule: TokenRule) -> None:
    """Six standard deviations, or all of a quarter of a bit below the least of 200."""
    found = [entropy(secret.encode()) for _, secret in _tokens(rule, 200)]
    far = (statistics.mean(found) - rule.entropy) / (statistics.stdev(found) or 1) > 6
    assert far or min(found) - rule.entropy > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_random_values_betrayed_by_their_surroundings_are_found(place: str, alphabet: str) -> None:
    source = random.Random(f"{place} {alphabet}")
    redactor = default_redactor()
    for size, allowed in ((12, 0.06), (20, 0.02), (40, 0.01)):
        count = 100
        missed = 0
        for _ in range(count):
            value = "".join(source.choices(ALPHABETS[alphabet], k=size))
            text = PLACES[place](value)
            missed += value in redactor.redact_text(text).value
        assert missed <= allowed * count, size


def test_basic_authorization_goes_whatever_it_encodes() -> None:
    source = random.Random(1)
    for _ in range(200):
        value = base64.b64encode(
            f"bob:{''.join(source.choices(ALPHABETS['base62'], k=12))}".encode()
        ).decode()
        assert value not in default_redactor().redact_text(f"Authorization: Basic {value}").value


class TestLetters:
    """Words and chance."""

    @pytest.mark.parametrize("name", NAMES)
    def test_names_read_like_words(self, name: str) -> None:
        assert reads_like_words(name.encode())

    @pytest.mark.parametrize(
        ("alphabet", "size", "allowed"),
        [(LOWER, 12, 0.03), (LOWER, 20, 0.01), (LOWER + UPPER, 16, 0.01)],
    )
    def test_random_letters_hardly_ever_do(self, alphabet: str, size: int, allowed: float) -> None:
        source = random.Random(size)
        words = sum(
            reads_like_words("".join(source.choices(alphabet, k=size)).encode())
            for _ in range(5000)
        )
        assert words <= allowed * 5000

    def test_a_few_letters_always_do(self) -> None:
        assert reads_like_words(b"xqzjkvw")
        assert reads_like_words(b"")
        assert reads_like_words(b"1234567890123456")


class TestPaths:
    """Where a key's name speaks for a credential, a path is none, but base64 may start like one."""

    @pytest.mark.parametrize(
        "path",
        [
            "/run/secrets/db",
            "./token.txt",
            "~/.ssh/id_ed25519",
            "/etc",
            "/",
            "/app-v2/keys_1/a.pem",
            "../x",
            "/Users/ann/k",
        ],
    )
    def test_paths(self, path: str) -> None:
        assert is_path(path.encode())
        assert default_redactor().redact({"token": path}).value == {"token": path}

    def test_base64_that_starts_with_a_slash_is_no_path(self) -> None:
        source = random.Random(5)
        values = ["/" + "".join(source.choices(ALPHABETS["base64"], k=31)) for _ in range(500)]
        assert sum(is_path(value.encode()) for value in values) <= 20
        value = "/k9Q+xT2mVb7Zr/4LwPe8sYdUa1cNf0H"
        assert value not in str(default_redactor().redact({"api_key": value}).value)
        assert value not in default_redactor().redact_text(f"tool --api-key {value} run").value


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080/a/b?email=ann@example.com",
        "see http://proxy:3128/path@version for it",
        "docker://registry.example.com:5000/team/app@sha256:" + "ab12" * 16,
        "git+ssh://git@example.com:team/project.git@v1.2.3",
    ],
)
def test_a_port_with_a_path_is_no_password(url: str) -> None:
    assert default_redactor().redact_text(url).value == url


class TestKeywords:
    """One search finds every literal, those too that another one covers in part."""

    @given(data=st.data())
    def test_no_literal_hides_another(self, data: st.DataObject) -> None:
        words = sorted({word.encode() for rule in TOKEN_RULES for word in rule.keywords})
        index = _index()
        pieces = data.draw(
            st.lists(st.one_of(st.sampled_from(words), st.binary(max_size=2)), max_size=6)
        )
        cut = [piece[data.draw(st.integers(0, 2)) :] for piece in pieces]
        text = b"".join(cut).lower() * data.draw(st.sampled_from([1, 2, 300]))
        hits = index.hits(text)
        assert set(hits) == {word for word in words if word in text}
        for word, places in hits.items():  # what has places has all of them
            assert places is None or set(places) == {
                at for at in range(len(text)) if text.startswith(word, at)
            }

    def test_a_token_whose_keyword_overlaps_with_another_is_found(self) -> None:
        key = "e53c92d9ae1d547a7bc6eb065e346da3-" + "us1"
        assert key not in default_redactor().redact_text(key).value


@cache
def _index() -> KeywordIndex:
    return KeywordIndex({word.encode() for rule in TOKEN_RULES for word in rule.keywords})
