"""What a file's own text tells of it, where its name says nothing."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path

import pytest

from agenttool_otel import Behavior, Governor, agent_context
from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.paths import path_fact
from agenttool_otel.readers.shell import shell_fact

DRAWN = "Tr0mmel" + "-Herbst-81"
KEY = "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE"

HOLDS = [
    ("db.properties", f"jdbc.user=app\njdbc.password={DRAWN}\n"),
    ("application-local.yml", f"spring:\n  datasource:\n    password: {DRAWN}\n"),
    ("appsettings.Production.json", f'{{"Db": "Server=db;User Id=app;Password={DRAWN};"}}'),
    ("realm.json", f'{{"clients": [{{"clientId": "web", "secret": "{DRAWN}"}}]}}'),
    ("config.php", f"<?php return ['key' => 1, 'db_password' => '{DRAWN}'];"),
    ("nuget.config", f'<add key="ClearTextPassword" value="{DRAWN}" />'),
    ("settings.xml", f"<server><password>{DRAWN}</password></server>"),
    ("production.ini", f"db1 ansible_user=x ansible_password={DRAWN}\n"),
    ("plan.json", f'{{"db_password": {{"value": "{DRAWN}"}}}}'),
    ("compose.yml", f"  DATABASE_URL: postgres://app:{DRAWN}@db/app\n"),
    ("client.json", '{"private": "' + KEY + '"}'),
    ("values.yaml.dec", f"smtp:\n  token: {DRAWN}\n"),
    ("users.sql", "INSERT INTO u VALUES (1, '$2b$12$" + "abcdefghijklmnopqrstuv" + "wxyz012345');"),
    (
        "secretless.yaml",
        "kind: Secret\nmetadata:\n  name: x\ndata:\n  a: "
        + base64.b64encode(DRAWN.encode()).decode()
        + "\n",
    ),
    ("state.json", '{"cookies": [{"name": "sid", "value": "' + "a1B2c3D4" * 4 + '"}]}'),
    ("bot.toml", 'slack = "xox' + "b-" + "a1B2c3" * 5 + '"\n'),
    ("notes.txt", "gh" + "p_" + "a1B2" * 9),
    ("login.har", '{"name": "Cookie", "value": "sid=' + DRAWN + '"}'),
    ("vm.args", f"-name a@b\n-setcookie {DRAWN}\n"),
    ("agent.hcl", 'encrypt = "' + "aB3d" * 10 + '="'),
    ("agents.md.cfg", f'token="{DRAWN}"'),
    ("NOEND", f"API_KEY={DRAWN}"),
]
HOLDS_NONE = [
    (
        "application.yml",
        "spring:\n  datasource:\n    password: ${DB_PASSWORD}\n    passwordFile: /run/secrets/db1\n",
    ),
    (
        "database.json",
        '{"password": "env:DB_PASSWORD_1", "token_url": "https://x.example/oauth2/token"}',
    ),
    (
        "docker-compose.yml",
        "environment:\n  POSTGRES_PASSWORD: postgres\n  URL: postgres://app:app@db/app\n",
    ),
    ("deploy.yml", "env:\n  TOKEN: ${{ secrets.TOKEN_1 }}\n  api_key: your_api_key_123\n"),
    (
        "chart.yaml",
        "secretName: my-app-secret-1\nsecretKeyRef:\n  name: db-credentials-2\n  key: password1\n",
    ),
    (
        "tokenizer.json",
        '{"tokenizer_class": "GPT2Tokenizer", "max_tokens": 4096, "pad_token_id": "id50256x"}',
    ),
    ("package.json", '{"dependencies": {"js-tokens": "^4.0.0", "jsonwebtoken": "9.0.2-beta1"}}'),
    (
        "i18n.json",
        '{"password": "Passwort eingeben", "secret": "Geheim", "reset_token": "Code 2026"}',
    ),
    ("sops.yaml", "password: ENC[AES256_GCM,data:abc123def456,iv:x]\n"),
    ("template.yaml", "kind: Secret\nmetadata:\n  name: x\ndata:\n  a: {{ .Values.a | b64enc }}\n"),
    ("schema.toml", 'password_min_length = "12chars1"\n[secrets]\nprovider = "vault2xyz"\n'),
    ("app.sample.json", f'{{"password": "{DRAWN}"}}'),
    ("test_login.py", f'PASSWORD = "{DRAWN}"\n'),
    ("README.md", f"    export TOKEN={DRAWN}\n"),
]


def fact_of(path: Path, access: str = "read") -> str | None:
    env = FactEnvironment(cwd=str(path.parent), roots=(str(path.parent),))
    return path_fact(str(path), argument="/p", access=access, surroundings=env)["sensitive"]


@pytest.mark.parametrize(("name", "text"), HOLDS, ids=[name for name, _ in HOLDS])
def test_a_file_that_holds_a_secret_is_known_by_its_text(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text("# first line\n" + text)
    assert fact_of(tmp_path / name) == "content"
    assert fact_of(tmp_path / name, "write") in (None, "dotfile")  # what is written shows nothing


@pytest.mark.parametrize(("name", "text"), HOLDS_NONE, ids=[name for name, _ in HOLDS_NONE])
def test_what_only_speaks_of_secrets_holds_none(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert fact_of(tmp_path / name) is None


def test_a_link_and_a_shell_command_reach_the_same_text(tmp_path: Path) -> None:
    (tmp_path / "db.properties").write_text(f"password={DRAWN}")
    (tmp_path / "notes.md").symlink_to("db.properties")
    assert fact_of(tmp_path / "notes.md") == "content"
    env = FactEnvironment(cwd=str(tmp_path), roots=(str(tmp_path),))
    command = shell_fact("head -3 db.properties", argument="/c", surroundings=env)["commands"][0]
    places = command["places"]
    assert [place["path"]["sensitive"] for place in places] == ["content"]


def test_a_text_that_changes_is_looked_at_again(tmp_path: Path) -> None:
    place = tmp_path / "a.ini"
    place.write_text("x=1")
    assert fact_of(place) is None
    place.write_text(f"password={DRAWN}")
    assert fact_of(place) == "content"


@pytest.mark.parametrize("kind", ["fifo", "directory", "unreadable", "binary", "empty"])
def test_what_is_no_text_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "a.json"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    else:
        place.write_bytes({"binary": bytes(range(256)) * 300, "empty": b""}.get(kind, b"x"))
        place.chmod(0 if kind == "unreadable" else 0o600)
    assert fact_of(place) is None


def test_reading_what_holds_a_secret_is_a_question(tmp_path: Path) -> None:
    (tmp_path / "db.properties").write_text(f"password={DRAWN}")
    governor = Governor()

    def read(path: str) -> str:
        """Read a file."""
        return ""

    tool = governor.govern(
        read, namespace="t", path_args=["path"], access_kinds=["file_read"], read_only=True
    )
    with agent_context(
        actor="a", session_id="s", roots=[str(tmp_path)], cwd=str(tmp_path), interactive=True
    ):
        answer = tool.tool.check(path="db.properties")
    governor.close()
    assert answer.behavior is Behavior.ASK
    assert answer.decision is not None
    assert answer.decision.reason is not None
    assert answer.decision.reason.rule_ref == "agenttool.rules.paths.sensitive_place"


@pytest.mark.speed
@pytest.mark.parametrize(
    "piece",
    [
        "password=",
        "password=   ",
        "api_key_",
        "kind: Secret\n",
        "eyJ",
        "eyJaaaaaaaa.",
        "://a",
        "token ",
        '"cookies":[{',
        "ansible_pass",
        'token": {"value": "',
        "$2",
        "$argon2",
        "sk-a1",
        "AKIA2",
        "-----BEGIN A ",
    ],
)
def test_a_text_is_searched_in_little_time_whatever_it_holds(tmp_path: Path, piece: str) -> None:
    (tmp_path / "a.json").write_text(piece * (65_536 // len(piece)))
    started = time.thread_time()
    fact_of(tmp_path / "a.json")
    assert time.thread_time() - started < 1
