"""What is found in material that nobody wrote for a test: sources that stand on every machine with
Python.
"""

from __future__ import annotations

import random
import re
import sysconfig
from pathlib import Path

import pytest

from agenttool_otel.redaction import default_redactor

LINES = 20
# addresses of authors are personal data, published as they are
PLACEHOLDER = re.compile(r"\[redacted:(?!email\b)\w+")


def pieces(folder: Path, count: int) -> list[str]:
    draw = random.Random(7)
    files = sorted(
        path
        for path in folder.rglob("*.py")
        if not {"site-packages", "test", "tests"} & set(path.parts)
    )
    found: list[str] = []
    while len(found) < count:
        lines = draw.choice(files).read_text("utf-8", "replace").split("\n")
        first = draw.randrange(len(lines))
        found.append("\n".join(lines[first : first + LINES])[:4000])
    return found


@pytest.mark.slow
def test_of_the_standard_library_next_to_nothing_is_taken() -> None:
    redact = default_redactor().redact_text
    texts = pieces(Path(sysconfig.get_path("stdlib")), 1500)
    changed = [text for text in texts if PLACEHOLDER.search(str(redact(text).value))]
    assert len(changed) <= len(texts) * 0.003, changed


@pytest.mark.parametrize(
    "text",
    [
        "[data-md-color-scheme=slate]{--md-default-fg-color--light:#fff;--md-default-fg-color--lighter:#eee}",
        "adduser --gecos GECOS --disabled-password $Username",
        "const readPasswords = async () => {",
        "const again = await readUserInfo.password('       Again:     ')",
        "# com.sun.management.jmxremote.password.toHashes = true|false",
        "pass_test = not np.isnan(result)",
        'print(f"   Pass: {(result[0] == 0) and (result[2] == 0)}")',
        'print(f"  PASS: VR={elem2.VR}, length={len(elem2.value)}")',
        "f'{indent_text}  pass',\nf'{indent_text}else:',",
        '# METHOD can be "trust", "reject", "md5", "password", "scram-sha-256"',
        'client.login(username=getpass.getuser(), password=getpass.getpass("LDAP password: "))',
        "GRAFANA_ADMIN_PASSWORD=your-password-here",
        "   --token value, -t value    Token of the server",
        "--api-key ENVVAR    Name of the variable that holds the key",
    ],
)
def test_code_and_documents_that_speak_of_passwords_stay(text: str) -> None:
    assert default_redactor().redact_text(text).value == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('page.locator("input[type=password]").fill("Lantern.Orchid402")', "Lantern.Orchid402"),
        ('browser.fill(selector="#pass", value="Lantern.Orchid402")', "Lantern.Orchid402"),
        ('type "Lantern.Orchid402" into the password field', "Lantern.Orchid402"),
        ("password=getpass(Lantern.Orchid402", "Lantern.Orchid402"),
        ("password: $Lantern402", "$Lantern402"),
        ("password: {SSHA}kd8Fj2lQw9", "kd8Fj2lQw9"),
        ("spring.security.user.password={noop}Lantern402", "Lantern402"),
        ("PASS: Lantern=402", "Lantern=402"),
    ],
)
def test_what_is_a_password_beside_them_goes(text: str, secret: str) -> None:
    assert secret not in str(default_redactor().redact_text(text).value)
