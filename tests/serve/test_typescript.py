"""The client of ``examples/serve`` in TypeScript, compiled and run against a decision point."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from decision_points import served

from agenttool_otel.testing import capture

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "serve" / "remote_tool.ts"
PACKAGES = ("typescript@5.9.3", "@types/node@20.19.0")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as JavaScript; its types are checked on the way."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node is not here")
    folder = tmp_path_factory.mktemp("typescript")
    words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    if subprocess.run(words, cwd=folder, capture_output=True, timeout=300, check=False).returncode:
        pytest.skip("TypeScript can't be had from npm")
    shutil.copy(EXAMPLE, folder)
    options = ["--strict", "--target", "es2022", "--module", "commonjs", "--types", "node"]
    compiler = folder / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [compiler, *options, EXAMPLE.name], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return folder / "remote_tool.js"


def run(program: Path, *words: str) -> str:
    done = subprocess.run(
        ["node", program, *words], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout


def root_with_notes(folder: Path) -> Path:
    root = folder / "root"
    root.mkdir()
    (root / "notes.txt").write_text("buy milk")
    return root


def test_a_permitted_call_runs_in_typescript(program: Path, tmp_path: Path) -> None:
    root = root_with_notes(tmp_path)
    with capture() as captured, served(captured.governor, tmp_path):
        shown = run(program, str(tmp_path / "serve.sock"), str(root), "notes.txt")
    assert shown.startswith("completed: ")
    assert "buy milk" in shown
    assert {span.name for span in captured.spans} == {"execute_tool read_file"}


def test_a_refused_call_does_not_run(program: Path, tmp_path: Path) -> None:
    root = root_with_notes(tmp_path)
    with capture() as captured, served(captured.governor, tmp_path):
        shown = run(program, str(tmp_path / "serve.sock"), str(root), "../../../etc/shadow")
    assert shown == "not run: the path is a sensitive place\n"


def test_without_a_decision_point_nothing_runs(program: Path, tmp_path: Path) -> None:
    root = root_with_notes(tmp_path)
    shown = run(program, str(tmp_path / "serve.sock"), str(root), "notes.txt")
    assert shown.startswith("not run: ")


def test_an_answer_that_is_cut_off_runs_nothing(program: Path, tmp_path: Path) -> None:
    root = root_with_notes(tmp_path)
    place = str(tmp_path / "serve.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        running = subprocess.Popen(
            ["node", program, place, str(root), "notes.txt"], stdout=subprocess.PIPE, text=True
        )
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(
                b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"state": "permitted"'
            )
        shown, _ = running.communicate(timeout=60)
    assert shown.startswith("not run: ")
