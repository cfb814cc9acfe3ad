"""What is released holds what it should, and works with an OPA server without the native engine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_ENGINE = """
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "regorus":
            raise ModuleNotFoundError(f"No module named {name!r}", name="regorus")

class Opa(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        document = json.loads(self.rfile.read(int(self.headers["content-length"])))
        behavior = "allow" if document["input"]["tool"]["name"] == "good" else "deny"
        reason = {"type": "rule", "rule_ref": f"opa.{behavior}", "message": "m"}
        answer = json.dumps({"result": {"behavior": behavior, "reason": reason, "rule_refs": []}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass

sys.meta_path.insert(0, Gone())
server = ThreadingHTTPServer(("127.0.0.1", 0), Opa)
threading.Thread(target=server.serve_forever, daemon=True).start()
from agenttool_otel import ConfigurationError, Governor, ToolDenied

governor = Governor(policy_engine="opa_server", opa_url=f"http://127.0.0.1:{server.server_port}")
assert governor.govern(lambda x: x, name="good")(3) == 3
try:
    governor.govern(lambda x: x, name="bad")(3)
except ToolDenied as denied:
    assert denied.decision.reason.rule_ref == "opa.deny"
else:
    raise AssertionError("it ran")
try:
    Governor()
except ConfigurationError as error:
    assert "AGENTTOOL_POLICY_ENGINE=opa_server" in str(error)
else:
    raise AssertionError("an engine that is not there")
assert not any(name.partition(".")[0] == "regorus" for name in sys.modules)
"""


def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wheel_and_sdist_hold_what_they_should(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    tool = release()
    wheel, sdist = tool.build(tmp_path)
    assert tool.problems(wheel, sdist) == []
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("agenttool_otel/secrets.db", "x")
    assert tool.problems(wheel, sdist) == ["the wheel has agenttool_otel/secrets.db"]


def test_an_opa_server_needs_no_native_engine(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT_ENGINE]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
