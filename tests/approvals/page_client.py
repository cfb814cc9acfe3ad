"""A client of the approvals page over real HTTP, which keeps its cookie."""

from __future__ import annotations

import http.client
from urllib.parse import urlencode

from agenttool_otel.approvals.web.server import ApprovalsServer

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Client:
    def __init__(self, server: ApprovalsServer) -> None:
        self.server = server
        self.cookie = ""

    def __call__(
        self,
        method: str,
        path: str,
        form: dict[str, str] | None = None,
        body: bytes | None = None,
        **headers: str,
    ) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent.setdefault("Cookie", self.cookie)
        if form is not None:
            body, sent = urlencode(form).encode(), {**FORM, **sent}
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text

    def sign_in(self) -> None:
        status, headers, _ = self("POST", "/login", {"token": self.server.token})
        assert status == 303
        self.cookie = headers["set-cookie"].split(";")[0]

    def csrf(self, request_id: str) -> str:
        return self.server.page.sessions.form_token(
            self.cookie.split("=", 1)[1], f"answer {request_id}"
        )
