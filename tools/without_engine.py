"""Decide by an OPA server where the native engine is not installed, or, with the word ``hide``, as
if it were not.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hidden:
    """An importer that finds no engine."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse the engine, and leave the rest to others."""
        if name.partition(".")[0] == "regorus":
            raise ModuleNotFoundError(f"No module named {name!r}", name="regorus")


class Opa(BaseHTTPRequestHandler):
    """Answers as an OPA does, by the tool's name."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Decide."""
        document = json.loads(self.rfile.read(int(self.headers["content-length"])))
        behavior = "allow" if document["input"]["tool"]["name"] == "good" else "deny"
        reason = {"type": "rule", "rule_ref": f"opa.{behavior}", "message": "m"}
        answer = json.dumps(
            {"result": {"behavior": behavior, "reason": reason, "rule_refs": []}}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Run a tool that the server allows and one that it denies."""
    if sys.argv[1:] == ["hide"]:
        sys.meta_path.insert(0, Hidden())  # type: ignore[arg-type]
    elif importlib.util.find_spec("regorus"):
        raise SystemExit("the engine is installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Opa)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    from agenttool_otel import ConfigurationError, Governor, ToolDenied

    governor = Governor(
        policy_engine="opa_server", opa_url=f"http://127.0.0.1:{server.server_port}"
    )
    if governor.govern(lambda x: x, name="good")(3) != 3:
        raise SystemExit("it did not run")
    try:
        governor.govern(lambda x: x, name="bad")(3)
    except ToolDenied as denied:
        if denied.decision is None or denied.decision.reason.rule_ref != "opa.deny":
            raise
    else:
        raise SystemExit("it ran")
    try:
        Governor()
    except ConfigurationError as error:
        if "AGENTTOOL_POLICY_ENGINE=opa_server" not in str(error):
            raise
    else:
        raise SystemExit("an engine that is not there")
    if any(name.partition(".")[0] == "regorus" for name in sys.modules):
        raise SystemExit("the engine was imported")


if __name__ == "__main__":
    main()
