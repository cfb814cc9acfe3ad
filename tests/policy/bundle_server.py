"""A web server of one bundle, which answers as a test wants it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class BundleServer(ThreadingHTTPServer):
    """A web server whose answer the test sets."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answer: tuple[int, dict[str, str], bytes] = (404, {}, b"")
        self.seen: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/bundles/b.tar.gz"


class _Handler(BaseHTTPRequestHandler):
    server: BundleServer

    def do_GET(self) -> None:
        self.server.seen.append({name.lower(): value for name, value in self.headers.items()})
        status, headers, body = self.server.answer
        if headers.get("ETag") and self.headers.get("If-None-Match") == headers["ETag"]:
            status, body = 304, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def running_server() -> Iterator[BundleServer]:
    """A server while the block runs."""
    server = BundleServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
