"""The page's server: the standard library's HTTP server, with what keeps other web pages and programs out.

A page on this machine is reachable by every program on it and, through the browser, by every web site that its user
opens. So: loopback only, a token that is exchanged for an HttpOnly SameSite=Strict cookie, a checked Host (DNS
rebinding), a checked Origin, a form token for each form, no inline script or style, and nothing cacheable.
"""

from __future__ import annotations

import http
import ipaddress
import logging
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, quote, unquote, urlsplit

from agenttool_otel.approvals.console import local_identity
from agenttool_otel.approvals.digests import args_digest
from agenttool_otel.approvals.display import merge_edit, parse_edit
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, StoredCall
from agenttool_otel.approvals.web.pages import DONE, FormState, detail_page, list_page, login_page, message_page
from agenttool_otel.approvals.web.sessions import SESSION_SECONDS, Sessions
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalNotFound,
    ConfigurationError,
)
from agenttool_otel.names import INSTRUMENTATION_NAME, ApprovalStatus

__all__ = ["ApprovalsServer"]

_LOG = logging.getLogger(f"{INSTRUMENTATION_NAME}.approvals.web")
_MAX_BODY: Final = 4_000_000
_MAX_STREAMS: Final = 16
_PENDING_SHOWN: Final = 100
_RECENT_SHOWN: Final = 15
_STATIC: Final = {
    "/static/style.css": ("style.css", "text/css; charset=utf-8"),
    "/static/live.js": ("live.js", "text/javascript; charset=utf-8"),
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # no-referrer would make browsers send "Origin: null" with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class PageStore(Protocol):
    """What the page needs of an ``ApprovalStore``."""

    def get(self, request_id: str) -> ApprovalRequest:
        """As ``ApprovalStore.get``."""

    def stored_call(self, ref: str) -> StoredCall:
        """As ``ApprovalStore.stored_call``."""

    def list(
        self,
        status: ApprovalStatus | str | None = None,
        *,
        invocation_id: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[ApprovalRequest]:
        """As ``ApprovalStore.list``."""

    def counts(self) -> dict[ApprovalStatus, int]:
        """As ``ApprovalStore.counts``."""

    def answer(self, request_id: str, answer: ApprovalAnswer, *, allow_requester: bool = False) -> ApprovalRequest:
        """As ``ApprovalStore.answer``."""

    def position(self) -> int:
        """As ``ApprovalStore.position``."""

    def now(self) -> datetime:
        """As ``ApprovalStore.now``."""


class ApprovalsServer:
    """Serves the approvals page for whoever has the token.

    Args:
        store: the store to show and to answer.
        host: address to listen on; another than loopback needs ``public_url``.
        port: port to listen on, 0 for any free one.
        answered_by: id of whoever signs in; the login name by default. It is recorded with every answer.
        roles: roles of whoever signs in. The token is the proof: give it to nobody who lacks them.
        token: the token; a random one by default.
        public_url: ``https://`` address under which a TLS proxy shows the page.
        interval: seconds between two looks for changes.
        on_rejected: told the id of a request that was rejected on the page, after it is stored.

    Raises:
        ConfigurationError: an address that is not loopback without an https ``public_url``, or a short token.
        OSError: the address is taken.
    """

    def __init__(
        self,
        store: PageStore,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        answered_by: str = "",
        roles: tuple[str, ...] = (),
        token: str | None = None,
        public_url: str | None = None,
        interval: float = 1.0,
        on_rejected: Callable[[str], None] | None = None,
    ) -> None:
        if public_url is not None and not (public_url.startswith("https://") and urlsplit(public_url).hostname):
            raise ConfigurationError("the page's public address must start with https://")
        if public_url is None and not _is_loopback(host):
            raise ConfigurationError("the page is for this machine only; elsewhere it needs a TLS proxy and public_url")
        if token is not None and len(token) < 20:
            raise ConfigurationError("the page's token needs at least 20 characters")
        self.token = token or secrets.token_urlsafe(32)
        self.store = store
        self.on_rejected = on_rejected
        self.sessions = Sessions(self.token)
        self.answered_by = answered_by or local_identity()
        self.roles = tuple(roles)
        self.interval = interval
        self.secure = public_url is not None
        self.cookie = "__Host-agenttool" if self.secure else "agenttool_approvals"
        self.streams = threading.BoundedSemaphore(_MAX_STREAMS)
        self.closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._http = _HttpServer((host, port), self)
        self.port: int = self._http.server_address[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = (public_url or f"http://{shown}:{self.port}").rstrip("/")
        names = ["127.0.0.1", "localhost", "[::1]"]
        self.hosts = frozenset({f"{name}:{self.port}" for name in names} | {urlsplit(self.url).netloc.lower()})
        self.origins = frozenset({f"http://{one}" for one in self.hosts} | {self.url.lower()})

    @property
    def sign_in_url(self) -> str:
        """The address with the token behind ``#``, where no server, log or Referer sees it."""
        return f"{self.url}/login#token={quote(self.token)}"

    def serve_forever(self) -> None:
        """Serve until ``close``."""
        self._http.serve_forever(poll_interval=0.2)

    def start(self) -> ApprovalsServer:
        """Serve in a background thread."""
        self._thread = threading.Thread(target=self.serve_forever, name="agenttool-approvals-page", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving and close the socket."""
        self.closing.set()
        if self._thread is not None:
            self._http.shutdown()
            self._thread.join(timeout=5)
        self._http.server_close()

    def __enter__(self) -> ApprovalsServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], page: ApprovalsServer) -> None:
        if ":" in address[0]:
            import socket

            self.address_family = socket.AF_INET6
        self.page = page
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOG.debug("a connection to the approvals page broke")


class _Refuse(Exception):
    def __init__(self, status: http.HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "agenttool"
    sys_version = ""
    timeout = 20
    server: _HttpServer

    # --- plumbing ---------------------------------------------------------------------------------------------------

    def do_GET(self) -> None:
        self._handle(self._get)

    def do_HEAD(self) -> None:
        self._handle(self._get)

    def do_POST(self) -> None:
        self._handle(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        _LOG.debug("%s %s", self.command, urlsplit(self.path).path if self.command else "")

    def _handle(self, action: Callable[[str, ApprovalsServer], None]) -> None:
        page = self.server.page
        session = ""
        try:
            self._check_host(page)
            session = self._session(page)
            action(urlsplit(self.path).path, page)
        except _Refuse as refusal:
            self.close_connection = True
            self._send_message(page, session, refusal.status, refusal.message)
        except ApprovalNotFound:
            self._send_message(page, session, http.HTTPStatus.NOT_FOUND, "There is no such request.")
        except ApprovalError as error:
            self._send_message(page, session, http.HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            self.close_connection = True
            _LOG.error("the approvals page failed: %s", type(error).__name__)
            self._send_message(page, session, http.HTTPStatus.INTERNAL_SERVER_ERROR, "The page failed.")

    def _check_host(self, page: ApprovalsServer) -> None:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].strip().lower() not in page.hosts:
            raise _Refuse(http.HTTPStatus.MISDIRECTED_REQUEST, "This page does not answer under that name.")

    def _check_same_origin(self, page: ApprovalsServer) -> None:
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site")
        if (origin is not None and origin.lower() not in page.origins) or site not in {None, "same-origin"}:
            raise _Refuse(http.HTTPStatus.FORBIDDEN, "This form came from somewhere else.")

    def _session(self, page: ApprovalsServer) -> str:
        try:
            morsel = SimpleCookie(self.headers.get("Cookie", "")).get(page.cookie)
        except CookieError:
            return ""
        session = morsel.value if morsel is not None else ""
        return session if page.sessions.knows(session) else ""

    def _form(self) -> dict[str, str]:
        kind = self.headers.get("Content-Type", "").split(";")[0].strip().lower()
        length = self.headers.get("Content-Length", "")
        if kind != "application/x-www-form-urlencoded" or self.headers.get("Transfer-Encoding"):
            raise _Refuse(http.HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Only forms of this page are accepted.")
        if not length.isdecimal() or int(length) > _MAX_BODY:
            raise _Refuse(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "This form is too large.")
        try:
            body = self.rfile.read(int(length)).decode("utf-8")
            fields = parse_qs(body, keep_blank_values=True, strict_parsing=bool(body), max_num_fields=20)
        except ValueError:
            raise _Refuse(http.HTTPStatus.BAD_REQUEST, "This form can't be read.") from None
        if any(len(values) != 1 for values in fields.values()):
            raise _Refuse(http.HTTPStatus.BAD_REQUEST, "A field appears twice.")
        return {name: values[0] for name, values in fields.items()}

    def _send(self, status: http.HTTPStatus, body: str, kind: str = "text/html; charset=utf-8", **extra: str) -> None:
        data = body.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in {**_HEADERS, **{key.replace("_", "-"): text for key, text in extra.items()}}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send_message(self, page: ApprovalsServer, session: str, status: http.HTTPStatus, message: str) -> None:
        who = page.answered_by if session else ""
        logout = page.sessions.form_token(session, "logout") if session else ""
        self._send(status, message_page(status.phrase, message, who=who, logout=logout))

    def _redirect(self, to: str, **extra: str) -> None:
        self._send(http.HTTPStatus.SEE_OTHER, "", Location=to, **extra)

    # --- pages ------------------------------------------------------------------------------------------------------

    def _get(self, path: str, page: ApprovalsServer) -> None:
        if path in _STATIC:
            name, kind = _STATIC[path]
            text = resources.files(__package__).joinpath(name).read_text("utf-8")
            return self._send(http.HTTPStatus.OK, text, kind)
        session = self._session(page)
        if path == "/login":
            return self._redirect("/") if session else self._send(http.HTTPStatus.OK, login_page())
        if not session:
            if path == "/events":
                raise _Refuse(http.HTTPStatus.UNAUTHORIZED, "Sign in first.")
            return self._redirect("/login")
        if path == "/":
            return self._list(page, session)
        if path == "/events":
            return self._events(page, session)
        if path.startswith("/requests/") and path.count("/") == 2:
            request_id = unquote(path.removeprefix("/requests/"))
            return self._detail(page, session, page.store.get(request_id))
        raise _Refuse(http.HTTPStatus.NOT_FOUND, "There is no such page.")

    def _list(self, page: ApprovalsServer, session: str) -> None:
        store = page.store
        position = store.position()
        pending = store.list(ApprovalStatus.PENDING, limit=_PENDING_SHOWN)
        newest = store.list(limit=_PENDING_SHOWN + _RECENT_SHOWN)
        recent = [one for one in newest if one.status is not ApprovalStatus.PENDING][:_RECENT_SHOWN]
        done = parse_qs(urlsplit(self.path).query).get("done", [""])[0]
        body = list_page(
            pending,
            recent,
            store.counts()[ApprovalStatus.PENDING],
            now=store.now(),
            state=f"{position}-{len(pending)}",
            who=page.answered_by,
            logout=page.sessions.form_token(session, "logout"),
            done=done if done in DONE else "",
        )
        self._send(http.HTTPStatus.OK, body)

    def _detail(
        self,
        page: ApprovalsServer,
        session: str,
        request: ApprovalRequest,
        form: FormState | None = None,
        status: http.HTTPStatus = http.HTTPStatus.OK,
    ) -> None:
        body = detail_page(
            request,
            now=page.store.now(),
            who=page.answered_by,
            logout=page.sessions.form_token(session, "logout"),
            csrf=page.sessions.form_token(session, f"answer {request.request_id}"),
            form=form,
        )
        self._send(status, body)

    def _events(self, page: ApprovalsServer, session: str) -> None:
        if not page.streams.acquire(blocking=False):
            raise _Refuse(http.HTTPStatus.SERVICE_UNAVAILABLE, "Too many pages are open.")
        try:
            self.close_connection = True
            self.send_response(http.HTTPStatus.OK)
            for name, value in {**_HEADERS, "Content-Type": "text/event-stream", "Connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            seen, due, quiet = -1, False, 0.0
            while not page.closing.is_set() and page.sessions.knows(session):
                try:
                    page.store.counts()  # makes what is due expired, which moves the position
                    position = page.store.position()
                except ApprovalError:
                    position = seen
                due, seen = position != seen, position
                if due or quiet >= 15:
                    self.wfile.write(b"event: change\ndata: {}\n\n" if due else b": still here\n\n")
                    self.wfile.flush()
                    quiet = 0.0
                page.closing.wait(page.interval)
                quiet += page.interval
        finally:
            page.streams.release()

    # --- forms ------------------------------------------------------------------------------------------------------

    def _post(self, path: str, page: ApprovalsServer) -> None:
        self._check_same_origin(page)
        form = self._form()
        if path == "/login":
            return self._sign_in(page, form)
        session = self._session(page)
        if not session:
            raise _Refuse(http.HTTPStatus.UNAUTHORIZED, "Sign in first.")
        if path == "/logout":
            self._check_form_token(page, session, "logout", form)
            page.sessions.sign_out(session)
            return self._redirect("/login", Set_Cookie=self._cookie(page, "", 0))
        parts = path.split("/")
        if len(parts) != 4 or parts[1] != "requests" or parts[3] not in {"approve", "reject", "edit"}:
            raise _Refuse(http.HTTPStatus.NOT_FOUND, "There is no such page.")
        request_id, action = unquote(parts[2]), parts[3]
        self._check_form_token(page, session, f"answer {request_id}", form)
        return self._answer(page, session, request_id, action, form)

    def _sign_in(self, page: ApprovalsServer, form: dict[str, str]) -> None:
        session = page.sessions.sign_in(form.get("token", "").strip())
        if session is None:
            time.sleep(0.2)
            return self._send(http.HTTPStatus.FORBIDDEN, login_page("This is not the token."))
        return self._redirect("/", Set_Cookie=self._cookie(page, session, SESSION_SECONDS))

    def _cookie(self, page: ApprovalsServer, value: str, seconds: int) -> str:
        secure = "; Secure" if page.secure else ""
        return f"{page.cookie}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"

    def _check_form_token(self, page: ApprovalsServer, session: str, purpose: str, form: dict[str, str]) -> None:
        if not page.sessions.form_token_fits(session, purpose, form.get("csrf", "")):
            raise _Refuse(http.HTTPStatus.FORBIDDEN, "This form is not from your session; load the page again.")

    def _answer(self, page: ApprovalsServer, session: str, request_id: str, action: str, form: dict[str, str]) -> None:
        request = page.store.get(request_id)
        typed = FormState("", action, form.get("reason", ""), form.get("arguments", ""))
        try:
            page.store.answer(request_id, _read_answer(page, request, action, form))
        except (ApprovalConflict, ApprovalExpired) as error:
            fresh = page.store.get(request_id)
            state = FormState(str(error), action, typed.reason, typed.arguments)
            return self._detail(page, session, fresh, state, http.HTTPStatus.CONFLICT)
        if action == "reject" and page.on_rejected is not None:
            page.on_rejected(request_id)
        return self._redirect(f"/?done={({'approve': 'approved', 'reject': 'rejected', 'edit': 'edited'})[action]}")


def _read_answer(page: ApprovalsServer, request: ApprovalRequest, action: str, form: dict[str, str]) -> ApprovalAnswer:
    who: dict[str, Any] = {"answered_by": page.answered_by, "roles": page.roles}
    if action == "reject":
        reason = form.get("reason", "").strip()
        if not reason:
            raise ApprovalConflict("say why, so that the agent can do better")
        return ApprovalAnswer(approved=False, reason=reason[:2000], **who)
    if action == "edit":
        edited = parse_edit(form.get("arguments", ""))
        original = page.store.stored_call(request.request_id).original_arguments
        merged = merge_edit(request.arguments_preview, edited, original)
        if args_digest(merged) == args_digest(original):
            raise ApprovalConflict("nothing was changed; use Approve, or change something")
        return ApprovalAnswer(approved=True, edited_input=merged, **who)
    remember = form.get("remember", "")
    if remember and not remember.isdecimal():
        raise ApprovalConflict("there is no such suggestion to remember")
    return ApprovalAnswer(approved=True, remember=int(remember) if remember else None, **who)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
