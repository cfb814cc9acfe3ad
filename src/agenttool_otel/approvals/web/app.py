"""The approvals page as a web application, with what keeps other web sites and programs out.

A page on this machine is reachable by every program on it and, through the browser, by every web
site that its user opens. So: a token that is exchanged for an HttpOnly SameSite=Strict cookie, a
checked Host (DNS rebinding), a checked Origin, a form token for each form, no inline script or
style, and nothing cacheable.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from importlib import resources
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import anyio.to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agenttool_otel.approvals.announcing import report_rejected
from agenttool_otel.approvals.display import (
    editable_arguments,
    merge_edit,
    other_facts,
    parse_edit,
    question_facts,
    request_details,
)
from agenttool_otel.approvals.grants import acceptable
from agenttool_otel.approvals.identity import args_digest, is_same_identity
from agenttool_otel.approvals.selecting import (
    AGES,
    ORDERS,
    RISKS,
    GroupBy,
    Selection,
    Summary,
    View,
    choices,
    groups_of,
    page_of,
    select,
)
from agenttool_otel.approvals.store.clock import to_us
from agenttool_otel.approvals.store.overview import MAX_HISTORY
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.approvals.web.hosts import asks_for, own_hosts
from agenttool_otel.approvals.web.proxied import Person, ProxyIdentity
from agenttool_otel.approvals.web.rendering import ENVIRONMENT
from agenttool_otel.approvals.web.sessions import SESSION_SECONDS, Sessions
from agenttool_otel.errors import ApprovalConflict, ApprovalError, ApprovalExpired, ApprovalNotFound
from agenttool_otel.names import INSTRUMENTATION_NAME, AnswerWay, ApprovalStatus

_LOG = logging.getLogger(f"{INSTRUMENTATION_NAME}.approvals.web")
MAX_FORM_BYTES: Final = 4_000_000
MAX_LOGIN_BYTES: Final = 20_000
MAX_STREAMS: Final = 16
MAX_THREADS: Final = 8
STREAM_SECONDS: Final = 240.0
"""How long one stream of changes lasts; the browser then opens the next by itself."""
_STREAM_HEARTBEAT_SECONDS: Final = 15.0
_WRONG_TOKEN_SECONDS: Final = 0.2
_TO_RUN_SHOWN: Final = 3
_MAX_REASON_CHARS: Final = 2000
_STATIC_TYPES: Final = {"style.css": "text/css", "live.js": "text/javascript"}
_HEADERS: Final = {
    # one request for a connection: nothing that follows its body is read as another
    "Connection": "close",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # no-referrer would make browsers send "Origin: null" with our own forms
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_DONE_BY_ACTION: Final = {"approve": "approved", "edit": "edited", "reject": "rejected"}
_STATES_OF_DONE: Final = {
    "approved": {ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED},
    "edited": {ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED},
    "rejected": {ApprovalStatus.REJECTED},
    "agreed": {ApprovalStatus.PENDING},
}
_DONE: Final = {
    "approved": "Approved. The call runs once, exactly as shown, when its agent resumes it.",
    "edited": "Approved with your arguments. They are validated and decided again before anything runs.",
    "rejected": "Rejected. The call will not run.",
    "agreed": "You agreed. The call runs once when the others who have to agree did, too.",
}


_CHOICES: Final = {
    "risk": [(risk.value, risk.value) for risk in RISKS],
    "older": [(word, age.text) for word, age in AGES.items()],
    "order": [(order.value, text) for order, text in ORDERS.items()],
    "group": [(by.value, f"same {by.value}") for by in GroupBy],
}


class RefusedForm(NamedTuple):
    """What a person typed into a form that was refused."""

    error: str
    action: str
    reason: str
    arguments: str


class ApprovalsPage:
    """The pages over one store, answered by one identity or by whom a proxy states."""

    def __init__(
        self,
        store: ApprovalStore,
        *,
        token: str,
        url: str,
        port: int,
        person: Person,
        proxy: ProxyIdentity | None,
        interval: float,
        on_rejected: Callable[[str], None] | None,
    ) -> None:
        self.store = store
        self.sessions = Sessions(token)
        self.closing = False
        self._person = person
        self._proxy = proxy
        self._interval = interval
        self._on_rejected = on_rejected
        self._open_streams = 0
        self._secure = url.startswith("https://")
        self.cookie = "__Host-agenttool" if self._secure else "agenttool_approvals"
        self._hosts = own_hosts(port) | {urlsplit(url).netloc.lower()}
        self._origins = frozenset({f"http://{host}" for host in self._hosts} | {url.lower()})

    def application(self) -> Starlette:
        """Return the ASGI application."""
        application = Starlette(
            routes=[
                Route("/", self._list),
                Route("/login", self._show_login),
                Route("/login", self._sign_in, methods=["POST"]),
                Route("/logout", self._sign_out, methods=["POST"]),
                Route("/events", self._events),
                Route("/requests/{request_id}", self._show),
                Route("/requests/{request_id}/{action}", self._answer, methods=["POST"]),
                Route("/static/{name}", self._static),
            ],
            middleware=[Middleware(_Guard, page=self)],
            exception_handlers={HTTPException: self._on_error, ApprovalError: self._on_error},
            lifespan=_few_threads,
        )
        application.router.redirect_slashes = False
        return application

    # --- who may come in --------------------------------------------------------------------------

    def refuse(self, request: Request) -> Response | None:
        """Return the refusal of a request that is not from this page's own browser; ``None`` lets
        it in.
        """
        if not asks_for(request.headers.getlist("host"), self._hosts):
            return self.message(
                request,
                HTTPStatus.MISDIRECTED_REQUEST,
                "This page does not answer under that name.",
            )
        reads = request.method in {"GET", "HEAD"}
        path = request.scope["path"]
        if not self._identify(request) and self._proxy is not None:
            return self.message(
                request, HTTPStatus.FORBIDDEN, "Open this page through its proxy, signed in there."
            )
        if not reads and not self._is_same_origin(request):
            return self.message(
                request, HTTPStatus.FORBIDDEN, "This form came from somewhere else."
            )
        if request.state.session or path == "/login" or path.startswith("/static/"):
            return None
        if not reads or path == "/events":
            return self.message(request, HTTPStatus.UNAUTHORIZED, "Sign in first.")
        return RedirectResponse("/login", HTTPStatus.SEE_OTHER)

    def _identify(self, request: Request) -> bool:
        """Set who a request is from and its session; return whether that is known."""
        request.state.session, request.state.person = "", self._person
        if self._proxy is None:
            session = request.cookies.get(self.cookie, "")
            request.state.session = session if self.sessions.is_signed_in(session) else ""
            return bool(request.state.session)
        person = self._proxy.person(request, self._person.roles)
        if person is None:
            return False
        # the proxy's sign-in is the session: a form's token is that person's
        request.state.session, request.state.person = f"proxy {person.name}", person
        return True

    def _is_same_origin(self, request: Request) -> bool:
        origins = request.headers.getlist("origin")
        if not all(origin.lower() in self._origins for origin in origins):
            return False
        sites = request.headers.getlist("sec-fetch-site")
        return all(site == "same-origin" for site in sites)

    def _check_form_token(self, request: Request, purpose: str, form: dict[str, str]) -> None:
        if not self.sessions.form_token_fits(request.state.session, purpose, form.get("csrf", "")):
            raise HTTPException(
                HTTPStatus.FORBIDDEN, "This form is not from your session; load the page again."
            )

    async def _sign_in(self, request: Request) -> Response:
        if self._proxy is not None:
            raise HTTPException(HTTPStatus.FORBIDDEN, "Sign in at the proxy.")
        form = await _read_form(request, MAX_LOGIN_BYTES)
        session = self.sessions.sign_in(form.get("token", "").strip())
        if session is None:
            await asyncio.sleep(_WRONG_TOKEN_SECONDS)
            return self._html(
                request, "login.html", HTTPStatus.FORBIDDEN, error="This is not the token."
            )
        return self._redirect_with_cookie("/", session, SESSION_SECONDS)

    async def _sign_out(self, request: Request) -> Response:
        self._check_form_token(request, "logout", await _read_form(request, MAX_FORM_BYTES))
        self.sessions.sign_out(request.state.session)
        return self._redirect_with_cookie("/login", "", 0)

    def _redirect_with_cookie(self, to: str, value: str, seconds: int) -> Response:
        secure = "; Secure" if self._secure else ""
        cookie = (
            f"{self.cookie}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
        )
        return RedirectResponse(to, HTTPStatus.SEE_OTHER, {"Set-Cookie": cookie})

    # --- what is shown ----------------------------------------------------------------------------

    def _html(
        self, request: Request, template: str, status: int = HTTPStatus.OK, /, **values: Any
    ) -> Response:
        session = getattr(request.state, "session", "")
        shared = {
            "who": request.state.person.name if session else "",
            "logout_token": "",
            "now": None,
            "live": "",
        }
        # who signs in at the proxy signs out there
        if session and self._proxy is None:
            shared["logout_token"] = self.sessions.form_token(session, "logout")
        text = ENVIRONMENT.get_template(template).render({**shared, **values})
        return HTMLResponse(text.encode("utf-8", "replace"), status)

    def message(self, request: Request, status: int, message: str) -> Response:
        """Return a page with what went wrong."""
        return self._html(
            request, "message.html", status, title=HTTPStatus(status).phrase, message=message
        )

    async def _on_error(self, request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            missing = error.status_code == HTTPStatus.NOT_FOUND
            return self.message(
                request, error.status_code, "There is no such page." if missing else error.detail
            )
        if isinstance(error, ApprovalNotFound):
            return self.message(request, HTTPStatus.NOT_FOUND, "There is no such request.")
        return self.message(request, HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC_TYPES:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        text = resources.files(__package__).joinpath("static", name).read_text("utf-8")
        return Response(text, media_type=_STATIC_TYPES[name])

    def _show_login(self, request: Request) -> Response:
        if request.state.session:
            return RedirectResponse("/", HTTPStatus.SEE_OTHER)
        return self._html(request, "login.html", error="")

    def _list(self, request: Request) -> Response:
        position = self.store.position()
        chosen = Selection.from_query(request.query_params)
        summaries = self.store.summaries(chosen.view)
        now = self.store.now()
        found = select(summaries, chosen, to_us(now))
        page = page_of(found, chosen.page)
        counts = self.store.counts()
        total, to_run = counts[ApprovalStatus.PENDING], counts[ApprovalStatus.APPROVED]
        return self._html(
            request,
            "list.html",
            chosen=chosen,
            page=page,
            requests=[] if chosen.group else self.store.listed(page.ids),
            groups=groups_of(found, GroupBy(chosen.group)) if chosen.group else [],
            # a view of its own has all of them
            to_run_first=self._to_run_first() if chosen.view is View.OPEN and to_run else [],
            tools=choices(summaries, GroupBy.TOOL, chosen.tool),
            rules=choices(summaries, GroupBy.RULE, chosen.rule),
            choices=_CHOICES,
            max_history=MAX_HISTORY,
            total=total,
            to_run=to_run,
            now=now,
            now_us=to_us(now),
            live="list",
            state=f"{position}-{len(found)}",
            summary=f"{total} waiting for an answer" if total else "Nothing waits for an answer",
        )

    def _to_run_first(self) -> list[ApprovalRequest]:
        first = self.store.summaries(View.TO_RUN)[:_TO_RUN_SHOWN]
        return self.store.listed([row.request_id for row in first])

    def _next(
        self, request: Request, chosen: Selection, answered: ApprovalRequest
    ) -> tuple[Summary | None, int]:
        """Return the open request of a selection that a person is offered next, and how many there
        are.
        """
        chosen = replace(chosen, view=View.OPEN)
        found = select(self.store.summaries(View.OPEN), chosen, to_us(self.store.now()))
        me = request.state.person.name
        others = [
            row
            for row in found
            if row.request_id != answered.request_id
            and not any(is_same_identity(person, me) for person in row.agreed)
        ]
        return (others[0] if others else None), len(others)

    def _show(self, request: Request) -> Response:
        return self._detail(request, self.store.get(request.path_params["request_id"]))

    def _detail(
        self,
        request: Request,
        asked: ApprovalRequest,
        status: int = HTTPStatus.OK,
        form: RefusedForm | None = None,
    ) -> Response:
        suggestions = [
            (number, update)
            for number, update in enumerate(asked.suggested_updates)
            if acceptable(asked, update)
        ]
        chosen = Selection.from_query(request.query_params)
        done = _done(request.query_params.get("done", ""), asked)
        following, left = self._next(request, chosen, asked) if done else (None, 0)
        typed = form.arguments if form is not None and form.action == "edit" else ""
        return self._html(
            request,
            "detail.html",
            status,
            request=asked,
            chosen=chosen,
            done=done,
            following=following,
            left=left,
            questions=question_facts(asked),
            facts=other_facts(asked),
            details=request_details(asked),
            suggestions=suggestions,
            editable=typed or editable_arguments(asked),
            form=form,
            answer_token=self.sessions.form_token(
                request.state.session, f"answer {asked.request_id}"
            ),
            now=(now := self.store.now()),
            now_us=to_us(now),
            live="detail",
            state=asked.status.value,
            summary=f"This request is {asked.status.value} now",
        )

    # --- what changes -----------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        if self._open_streams >= MAX_STREAMS:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "Too many pages are open.")
        return StreamingResponse(
            self._changes(request), headers={"Content-Type": "text/event-stream"}
        )

    def _is_signed_in(self, request: Request) -> bool:
        return self._proxy is not None or self.sessions.is_signed_in(request.state.session)

    async def _changes(self, request: Request) -> AsyncIterator[bytes]:
        self._open_streams += 1
        try:
            seen, quiet, ends_at = -1, 0.0, time.monotonic() + STREAM_SECONDS
            while not self.closing and self._is_signed_in(request) and time.monotonic() < ends_at:
                position = await run_in_threadpool(self._position, seen)
                if position != seen or quiet >= _STREAM_HEARTBEAT_SECONDS:
                    yield (
                        b"event: change\ndata: {}\n\n" if position != seen else b": still here\n\n"
                    )
                    quiet = 0.0
                seen = position
                await asyncio.sleep(self._interval)
                quiet += self._interval
        finally:
            self._open_streams -= 1

    def _position(self, seen: int) -> int:
        try:
            self.store.counts()  # makes what is due expired, which moves the position
            return self.store.position()
        except ApprovalError:
            return seen

    async def _answer(self, request: Request) -> Response:
        request_id, action = request.path_params["request_id"], request.path_params["action"]
        if action not in _DONE_BY_ACTION:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        form = await _read_form(request, MAX_FORM_BYTES)
        self._check_form_token(request, f"answer {request_id}", form)
        return await run_in_threadpool(self._store_answer, request, request_id, action, form)

    def _store_answer(
        self, request: Request, request_id: str, action: str, form: dict[str, str]
    ) -> Response:
        try:
            asked = self.store.get(request_id)
            answer = self._answer_of(request.state.person, asked, action, form)
            answered = self.store.answer(request_id, answer)
        except (ApprovalConflict, ApprovalExpired) as error:
            refused = RefusedForm(
                str(error), action, form.get("reason", ""), form.get("arguments", "")
            )
            return self._detail(request, self.store.get(request_id), HTTPStatus.CONFLICT, refused)
        if action == "reject":
            report_rejected(self._on_rejected, request_id)
        waits = answered.status is ApprovalStatus.PENDING
        done = "agreed" if waits else _DONE_BY_ACTION[action]
        chosen = Selection.from_query(request.query_params)
        shown = chosen.address(f"/requests/{request_id}")
        mark = "&" if "?" in shown else "?"
        return RedirectResponse(f"{shown}{mark}done={done}", HTTPStatus.SEE_OTHER)

    def _answer_of(
        self, person: Person, asked: ApprovalRequest, action: str, form: dict[str, str]
    ) -> ApprovalAnswer:
        who: dict[str, Any] = {
            "answered_by": person.name,
            "roles": person.roles,
            "way": AnswerWay.PAGE,
        }
        if action == "reject":
            reason = form.get("reason", "").strip()
            if not reason:
                raise ApprovalConflict("give a reason, so that the agent can do better")
            return ApprovalAnswer(approved=False, reason=reason[:_MAX_REASON_CHARS], **who)
        if action == "edit":
            edited = parse_edit(form.get("arguments", ""))
            original = self.store.stored_call(asked.request_id).original_arguments
            merged = merge_edit(asked.arguments_preview, edited, original)
            if args_digest(merged) == args_digest(original):
                raise ApprovalConflict("nothing was changed; use Approve, or change something")
            return ApprovalAnswer(approved=True, edited_input=merged, **who)
        remember = form.get("remember", "")
        if remember and not remember.isdecimal():
            raise ApprovalConflict("there is no such suggestion to remember")
        return ApprovalAnswer(approved=True, remember=int(remember) if remember else None, **who)


def _done(word: str, asked: ApprovalRequest) -> str:
    """Return what to say after an answer; empty where a request is not in that state, as after a link
    from elsewhere.
    """
    if asked.status not in _STATES_OF_DONE.get(word, ()):
        return ""
    if word == "agreed" and not asked.agreed:
        return ""
    return _DONE[word]


class _Guard:
    """Refuses what is not from this page's own browser, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, page: ApprovalsPage) -> None:
        self._app = app
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        request = Request(scope, receive)
        try:
            await (self._page.refuse(request) or self._app)(scope, receive, send_with_headers)
        except ClientDisconnect:
            _LOG.debug("a connection to the approvals page broke")
        except Exception as error:  # its text may hold what must not be logged
            _LOG.error("the approvals page failed: %s", type(error).__name__)
            if not started:
                failed = self._page.message(
                    request, HTTPStatus.INTERNAL_SERVER_ERROR, "The page failed."
                )
                await failed(scope, receive, send_with_headers)


@asynccontextmanager
async def _few_threads(_: Starlette) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = MAX_THREADS
    yield


async def _read_form(request: Request, max_bytes: int) -> dict[str, str]:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    length = request.headers.get("content-length", "")
    if kind != "application/x-www-form-urlencoded" or "transfer-encoding" in request.headers:
        raise HTTPException(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Only forms of this page are accepted."
        )
    if not length.isdecimal() or int(length) > max_bytes:
        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "This form is too large.")
    try:
        body = (await request.body()).decode("utf-8")
        fields = parse_qsl(
            body, keep_blank_values=True, strict_parsing=bool(body), max_num_fields=20
        )
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "This form can't be read.") from None
    if len(dict(fields)) != len(fields):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "A field appears twice.")
    return dict(fields)
