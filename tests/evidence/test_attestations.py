"""Signed statements of records, checked by the command and by a script of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from recorded_calls import record_calls
from typer.testing import CliRunner

from agenttool_otel.cli.main import app

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "verify_evidence.py"
Check = Callable[[Path], int]


def command(*words: str | Path) -> int:
    """The exit code of ``agenttool evidence``."""
    return CliRunner().invoke(app, ["evidence", *map(str, words)]).exit_code


def by_command(folder: Path) -> int:
    statement, public = folder / "statement.json", folder / "public.pem"
    return command("verify", statement, "--from", folder / "d.jsonl", "--key", public)


def by_script(folder: Path) -> int:
    words = [folder / "statement.json", folder / "public.pem", folder, folder / "d.jsonl.key"]
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, check=False)
    return done.returncode


@pytest.fixture
def attested(tmp_path: Path) -> Path:
    """A folder with records, a statement of them, and its public key."""
    record_calls(tmp_path / "d.jsonl", ())
    private = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    (tmp_path / "private.pem").write_bytes(
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (tmp_path / "public.pem").write_bytes(
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    words = ["--from", tmp_path / "d.jsonl", "--key", tmp_path / "private.pem"]
    assert command("attest", *words, "-o", tmp_path / "statement.json") == 0
    return tmp_path


@pytest.mark.parametrize("check", [by_command, by_script])
def test_records_are_those_of_their_statement(attested: Path, check: Check) -> None:
    assert check(attested) == 0


@pytest.mark.parametrize("check", [by_command, by_script])
def test_one_changed_byte_of_the_last_line_is_found(attested: Path, check: Check) -> None:
    path = attested / "d.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    assert check(attested) != 0


@pytest.mark.parametrize("check", [by_command, by_script])
def test_lines_cut_off_at_the_end_are_found(attested: Path, check: Check) -> None:
    path = attested / "d.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert check(attested) != 0


@pytest.mark.parametrize("check", [by_command, by_script])
def test_a_statement_of_another_signer_is_refused(attested: Path, check: Check) -> None:
    other = Ed25519PrivateKey.generate().public_key()
    (attested / "public.pem").write_bytes(
        other.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    assert check(attested) != 0


def test_the_script_has_at_most_sixty_lines() -> None:
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 60
