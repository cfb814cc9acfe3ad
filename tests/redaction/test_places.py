"""Secrets that only their place betrays, put there at random; and what stands at such places and is
none.
"""

from __future__ import annotations

import base64
import json
import random
import string

import pytest
from places import KEPT, PASSWORDS, TOKENS

from agenttool_otel.redaction import Redactor, default_redactor

_ALNUM = string.ascii_letters + string.digits


def _password(source: random.Random) -> str:
    """As people choose them: words with digits, and now and then a sign."""
    words = source.sample(
        ("Lobster", "marble", "Jigsaw", "pebble", "Rusty", "insect", "Blanket", "zinnia"), 2
    )
    return "".join(words) + str(source.randrange(100, 1000)) + source.choice(("", "!", "*", "x"))


def _hexadecimal(source: random.Random) -> str:
    return "".join(source.choices("0123456789abcdef", k=32))


def _places(groups: dict[str, tuple[str, ...]]) -> list[object]:
    return [
        pytest.param(template, id=f"{group}: {template[:40]!r}")
        for group, templates in groups.items()
        for template in templates
    ]


@pytest.mark.parametrize("template", _places(PASSWORDS))
def test_a_password_goes_from_its_place(template: str) -> None:
    source = random.Random(template)
    for _ in range(5):
        secret = _password(source)
        text = template.format(secret)
        result = default_redactor().redact_text(text)
        assert secret not in result.value
        assert default_redactor().redact_text(result.value).value == result.value


@pytest.mark.parametrize("template", _places(TOKENS))
def test_a_machine_key_goes_from_its_place(template: str) -> None:
    source = random.Random(template)
    for _ in range(5):
        secret = _hexadecimal(source)
        result = default_redactor().redact_text(template.format(secret))
        assert secret not in result.value
        assert default_redactor().redact_text(result.value).value == result.value


@pytest.mark.parametrize("text", _places(KEPT))
def test_what_only_stands_at_such_a_place_is_kept(text: str) -> None:
    assert default_redactor().redact_text(text).value == text


def test_values_of_a_decoded_manifest_key_and_form_field_go() -> None:
    redact = default_redactor().redact
    manifest = {
        "kind": "Secret",
        "metadata": {"name": "db"},
        "data": {"user": "cm9vdA==", "ca": "QUJD"},
    }
    assert redact(manifest).value == {
        "kind": "Secret",
        "metadata": {"name": "db"},
        "data": {"user": "[redacted:credential]", "ca": "[redacted:credential]"},
    }
    jwk = {
        "kty": "EC",
        "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "d": "j" * 20 + "7" * 20,
    }
    assert redact(jwk).value == {**jwk, "d": "[redacted:private_key]"}
    field = {"selector": "#login input[type=password]", "text": "rabbit"}
    assert redact(field).value == {**field, "text": "[redacted:password]"}
    other = {"selector": "#search", "text": "rabbit"}
    assert redact(other).value == other


@pytest.mark.parametrize("secret", ["kqzvhxwjrtplmnbd", "kQzVhXwJrTpLmNbDqZ"])
def test_a_credential_of_letters_is_not_taken_for_a_scheme(secret: str) -> None:
    assert (
        secret not in default_redactor().redact_text(f"Authorization: {secret} sent to host").value
    )
    assert default_redactor().redact_text("Authorization: required for this route").redactions == ()


class TestTokensInPieces:
    """A token is one for whoever reads it, however it was written."""

    TOKEN = "gh" + "p_" + "XkfRTXjsdOUhY5ko" + "eC4uuLxzoMhSg52CSG4g"

    @pytest.mark.parametrize(
        "text",
        [
            '"{0}" + "{1}"',
            "'{0}' .\n  '{1}'",
            "token ({0}\n    {1}\n2026-01-02 12:00:00 next line)",
            "{0}\\\n{1} and more",
            '#define T "{0}" "{1}"',
            'tok = "{0}" & _\n    "{1}"',
            '<td class="tok">{0}<wbr>{1}</td>',
            '<span class="s">{0}</span><span class="s">{1}</span>',
            "$ gh auth token\n{0}\n{1}\n$ ",
            "x{0}=\n{1}".replace("x", "Content-Transfer-Encoding: quoted-printable\n\n"),
            "npm \x1b[33m{0}\x1b[0m{1} for",
        ],
        ids=repr,
    )
    def test_two_pieces(self, text: str) -> None:
        first, second = self.TOKEN[:20], self.TOKEN[20:]
        shown = default_redactor().redact_text(text.format(first, second)).value
        assert second not in shown
        assert first not in shown

    def test_many_lines(self) -> None:
        """A JSON Web Token of eight lines."""
        source = random.Random(3)
        header, body = "eyJhbGciOiJSUzI1NiJ9", "eyJ" + "".join(source.choices(_ALNUM, k=120))
        token = f"{header}.{body}." + "".join(source.choices(_ALNUM + "-_", k=342))
        lines = [token[at : at + 64] for at in range(0, len(token), 64)]
        shown = default_redactor().redact_text("access:\n  " + "\n  ".join(lines) + "\n").value
        assert not [line for line in lines if line in shown]

    @pytest.mark.parametrize(
        "encode",
        [
            lambda text: "".join(f"\\x{ord(char):02x}" for char in text),
            lambda text: "".join(f"&#{ord(char)};" for char in text),
            lambda text: "".join(f"&#x{ord(char):x};" for char in text),
            lambda text: "".join(f"{char}\0" for char in text),
            lambda text: "".join(f"%{ord(char):02x}" for char in text),
            lambda text: "\\\\x" + text.encode().hex(),
            lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
        ],
        ids=[
            "hexadecimal escapes",
            "HTML",
            "HTML, hexadecimal",
            "UTF-16",
            "percent",
            "bytea",
            "base64 twice",
        ],
    )
    def test_encoded_characters(self, encode: object) -> None:
        assert callable(encode)
        encoded = encode(self.TOKEN)
        assert encoded[8:40] not in default_redactor().redact_text(f"k = {encoded} end").value

    def test_powershell_commands(self) -> None:
        command = "net user svc /add; $password = 'Lobstermarble634'; Set-LocalUser svc"
        encoded = base64.b64encode(command.encode("utf-16-le")).decode()
        assert (
            encoded
            not in default_redactor().redact_text(f"powershell -EncodedCommand {encoded}").value
        )


def _texts_of_places() -> list[str]:
    source = random.Random(9)
    return [
        template.format(_password(source) if groups is PASSWORDS else _hexadecimal(source))
        for groups in (PASSWORDS, TOKENS)
        for group in groups.values()
        for template in group
    ]


@pytest.fixture
def with_re2() -> list[str]:
    return [default_redactor().redact_text(text).value for text in _texts_of_places()]


def test_python_re_finds_the_same_places(with_re2: list[str], python_re: Redactor) -> None:
    for text, value in zip(_texts_of_places(), with_re2, strict=True):
        assert python_re.redact_text(text).value == value, json.dumps(text)


PERSONAL = [
    ("BSN: {}", "714003700", "national_id"),
    ("burgerservicenummer {}", "111222333", "national_id"),
    ("Numer PESEL: {}", "84071706568", "national_id"),
    ("Steuer-Identifikationsnummer: {}", "39 456 157 083", "national_id"),
    ("Steuer-ID {}", "86095742719", "national_id"),
    ("T.C. Kimlik No: {}", "63960377292", "national_id"),
    ("NHS number {}", "943 476 5919", "national_id"),
    ("SIN: {}", "046 454 286", "national_id"),
    ("TFN {}", "123 456 782", "national_id"),
    ("Tél. du client : {}", "06 33 76 96 24", "phone"),
    ("Handynummer: {}", "0171 2345901", "phone"),
    ("Móvil: {}", "0612-334-498", "phone"),
]
CODES = [
    ("Tu código de acceso de un solo uso es {} (válido 5 minutos).", "673185"),
    ("G-{} ist dein Bestätigungscode. Gib ihn nicht weiter.", "559246"),
    ("Votre code de connexion à usage unique : {}", "833437"),
    ("Doğrulama kodunuz: {}. Kimseyle paylaşmayın.", "978065"),
    ("Il codice di verifica è {}", "402918"),
    ("{} is your Example login code", "90417"),
    ("Backup codes:\n1. 6613 6550\n2. {}\n3. 9803 7319\n", "9833 7833"),
    ("Recovery codes\n\n- {}\n- k3jf-92ms1\n".replace("\n\n", "\n"), "a1b2c-33d4e"),
    ("BitLocker Recovery Key:\n    {}", "969774-116787-655674-830510-484127-459580-558510-727956"),
    ("Scan the QR code or enter this setup key: {}", "xph2 gewi tgbo xdbw tnjq bepk dyrl d5na"),
    (
        "root:{}:19890:0:99999:7:::",
        "$6$1GeZkgE6v9BZ$W.L1mmMMvk6SFhfylNirMoUPOe9zDGrnStcYaNz2TfNZ4ieoGKnXrhYbm8vUa7e",
    ),
]


@pytest.mark.parametrize(("text", "number", "kind"), PERSONAL)
def test_a_personal_number_goes_behind_its_label(text: str, number: str, kind: str) -> None:
    redacted = default_redactor().redact(text.format(number))
    assert number not in redacted.value
    assert {item.kind for item in redacted.redactions} == {kind}
    assert (
        default_redactor().redact(f"row {number} of the table").value
        == f"row {number} of the table"
    )


@pytest.mark.parametrize(
    ("text", "number", "kind"), [row for row in PERSONAL if row[2] == "national_id"]
)
def test_a_labelled_number_whose_check_digit_is_wrong_stays(
    text: str, number: str, kind: str
) -> None:
    wrong = text.format(number[:-1] + str((int(number[-1]) + 1) % 10))
    assert default_redactor().redact(wrong).value == wrong


@pytest.mark.parametrize(("text", "code"), CODES)
def test_a_code_for_one_use_goes(text: str, code: str) -> None:
    assert code not in default_redactor().redact(text.replace("{}", code)).value
