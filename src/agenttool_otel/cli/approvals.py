"""``agenttool approvals``: list, show, answer, watch and serve the requests of an approval store.

Everyone who can read the store and its key can answer; ``--as`` and ``--role`` are recorded as
stated, not checked.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenttool_otel.approvals.console import edit_in_editor, local_identity, request_panel
from agenttool_otel.approvals.display import (
    editable_arguments,
    merge_edit,
    open_people,
    parse_edit,
    remaining,
    visible,
)
from agenttool_otel.approvals.grants import described
from agenttool_otel.approvals.store.clock import from_us
from agenttool_otel.approvals.store.database import missing_file
from agenttool_otel.approvals.store.sealing import load_or_create_key_file
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, Grant, LogEntry
from agenttool_otel.cli.common import AsJson, failure, group, print_json
from agenttool_otel.cli.endings import open_endings
from agenttool_otel.cli.rendering import out
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalNotFound,
    ConfigurationError,
)
from agenttool_otel.names import AnswerWay, ApprovalLogKind, ApprovalStatus, Env

EXIT_CODES: Final = {
    "ok": 0,
    "store_error": 1,
    "usage": 2,
    "not_found": 3,
    "conflict": 4,
    "expired": 5,
    "timeout": 6,
}
"""What the exit codes of these commands mean."""

_fail = partial(failure, EXIT_CODES)
app = group("approvals", "List, show, answer, watch and serve approval requests.")

Url = Annotated[
    str,
    typer.Option(
        "--url",
        "-u",
        envvar=Env.APPROVALS_URL,
        help="Path or URL of the store: a file, sqlite:///..., postgresql://...",
        show_default=False,
    ),
]
RequestId = Annotated[
    str, typer.Argument(metavar="REQUEST", help="Id of the request or invocation, or its start.")
]
Who = Annotated[
    str, typer.Option("--as", help="Who answers; the login name by default.", show_default=False)
]
Roles = Annotated[
    list[str] | None,
    typer.Option("--role", help="A role of the person who answers; may be repeated."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask; needed without a terminal.")]


_WAIT_EXITS: Final = {
    ApprovalStatus.PENDING: "timeout",
    ApprovalStatus.APPROVED: "ok",
    # another process has run the call already
    ApprovalStatus.CONSUMED: "ok",
    ApprovalStatus.EXPIRED: "expired",
}
_UNITS: Final = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_MIN_PREFIX: Final = 8
_MAX_SEARCHED: Final = 1000


_ERRORS: Final[dict[type[Exception], str]] = {
    ApprovalNotFound: "not_found",
    ApprovalExpired: "expired",
    ApprovalConflict: "conflict",
    ConfigurationError: "usage",
}


@contextlib.contextmanager
def _store(url: str, *, create: bool = False) -> Iterator[ApprovalStore]:
    """Open the store of one command, and turn its errors into an error message and an exit code.

    Args:
        url: Its path or URL.
        create: Whether a missing file is made, as by a command that waits for requests.
    """
    try:
        if not url:
            raise _fail(f"No approval store: give --url, or set {Env.APPROVALS_URL}.", "usage")
        if not create:
            _refuse_missing(url)
        with contextlib.closing(ApprovalStore(url)) as store:
            yield store
    except (ApprovalError, ConfigurationError) as error:
        raise _fail(str(error), _exit_name(error)) from None


def _refuse_missing(url: str) -> None:
    """Fail for a SQLite file that is not there: ``list -u aprovals.db`` would make an empty one."""
    name = missing_file(url)
    if name is not None:
        raise _fail(f"There is no approval store {visible(name)}.", "store_error")


def _exit_name(error: Exception) -> str:
    for kind, name in _ERRORS.items():
        if isinstance(error, kind):
            return name
    return "store_error"


def _find(store: ApprovalStore, ref: str) -> ApprovalRequest:
    """The request with this id, or the start of it, or of its invocation's id."""
    try:
        return store.get(ref)
    except ApprovalNotFound:
        found = store.by_invocation(ref) or _by_prefix(store, ref)
        if found is None:
            raise
        return found


def _by_prefix(store: ApprovalStore, ref: str) -> ApprovalRequest | None:
    """The only request whose id, or whose invocation's, begins so.

    Raises:
        typer.Exit: Another one begins so, or may do so: the store has more than are searched.
    """
    # "ap" would find the wrong request as soon as there is only one
    if len(ref) < _MIN_PREFIX:
        return None
    searched = store.list(None, limit=_MAX_SEARCHED)
    found = []
    for request in searched:
        if request.request_id.startswith(ref) or request.invocation_id.startswith(ref):
            found.append(request)
    all_searched = len(searched) < _MAX_SEARCHED
    if len(found) > 1 or (found and not all_searched):
        raise _fail(
            f"More than one request may begin with {visible(ref)}: give the whole id.", "usage"
        )
    return found[0] if found else None


@app.command("list")
def list_requests(
    url: Url = "",
    status: Annotated[
        str, typer.Option("--status", "-s", help="pending, approved, rejected ... or all.")
    ] = ApprovalStatus.PENDING.value,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, help="At most so many.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """List requests, those that expire first in front."""
    if status != "all" and status not in set(ApprovalStatus):
        raise _fail(f"There is no status {visible(status)[:40]}.", "usage")
    with _store(url) as store:
        found = store.list(None if status == "all" else status, limit=limit)
        if as_json:
            print_json([request.to_json_object() for request in found])
            return
        now = store.now()
        rows = []
        for request in found:
            left = ""
            if request.status is ApprovalStatus.PENDING:
                left = remaining(request, now)
            rows.append(
                (
                    request.request_id,
                    request.tool_name,
                    request.actor_id,
                    _people_counted(request),
                    request.question or request.message,
                    left,
                )
            )
        headings = ("Request", "Tool", "For", "State", "Question", "Expires in")
        _print_table("Approval requests", headings, rows)
        _print_cut(len(rows), _number_of(store, status))


def _number_of(store: ApprovalStore, status: str) -> int:
    counts = store.counts()
    return sum(counts.values()) if status == "all" else counts[ApprovalStatus(status)]


def _print_cut(shown: int, number: int) -> None:
    """Print that a table does not have all."""
    if shown < number:
        out().print(Text(f"{shown} of {number}; --limit shows more.", style="dim"))


def _people_counted(request: ApprovalRequest) -> str:
    """Return a request's state, and how many more people it waits for where several have to agree."""
    if not open_people(request):
        return request.status.value
    return f"{request.status.value}, {request.still_needed.people} more"


def _print_table(title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table whose first column is an id, which is never folded, so that it can be copied."""
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading == headings[0])
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    out().print(table if rows else Text("Nothing there.", style="dim"))


@app.command()
def show(request: RequestId, url: Url = "", as_json: AsJson = False) -> None:
    """Show one request in full."""
    with _store(url) as store:
        found = _find(store, request)
        if as_json:
            print_json(found.to_json_object())
        else:
            out().print(request_panel(found))


@app.command()
def approve(
    request: RequestId,
    url: Url = "",
    who: Who = "",
    role: Roles = None,
    edit: Annotated[
        str,
        typer.Option(
            "--edit", help="File with edited arguments as JSON, - for standard input, or 'editor'."
        ),
    ] = "",
    remember: Annotated[
        int | None,
        typer.Option("--remember", min=1, help="Accept the suggested update of this number too."),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Approve one request: its call runs once, exactly as shown."""
    with _store(url) as store:
        found = _find(store, request)
        edited = _edited(store, found, edit) if edit else None
        answer = ApprovalAnswer(
            approved=True,
            answered_by=who or local_identity(),
            roles=tuple(role or ()),
            edited_input=edited,
            remember=None if remember is None else remember - 1,
            way=AnswerWay.COMMAND_LINE,
        )
        _confirm(found, "Approve it?", yes)
        with open_endings(store):
            answered = store.answer(found.request_id, answer)
        _answered(answered, as_json)


@app.command()
def reject(
    request: RequestId,
    reason: Annotated[
        str, typer.Option("--reason", "-r", help="Why; the agent gets the text.")
    ] = "",
    url: Url = "",
    who: Who = "",
    role: Roles = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Reject one request: its call will not run."""
    with _store(url) as store:
        found = _find(store, request)
        _confirm(found, "Reject it?", yes)
        answer = ApprovalAnswer(
            approved=False,
            answered_by=who or local_identity(),
            roles=tuple(role or ()),
            reason=reason,
            way=AnswerWay.COMMAND_LINE,
        )
        with open_endings(store) as endings:
            answered = store.answer(found.request_id, answer)
            endings.rejected(found.request_id)
        _answered(answered, as_json)


def _edited(store: ApprovalStore, request: ApprovalRequest, source: str) -> dict[str, Any]:
    if source == "editor":
        edited = edit_in_editor(editable_arguments(request))
        if edited is None:
            raise _fail("No editor: set VISUAL or EDITOR, or give a file.", "usage")
        text = edited
    elif source == "-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(source).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _fail(
                f"The edited arguments can't be read: {type(error).__name__}.", "usage"
            ) from None
    # the preview has "<redacted>" where a secret stood: what was not edited keeps its true value
    original = store.stored_call(request.request_id).original_arguments
    return merge_edit(request.arguments_preview, parse_edit(text), original)


def _confirm(request: ApprovalRequest, question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise _fail("There is no terminal to ask on: give --yes.", "usage")
    console = Console(stderr=True)
    console.print(request_panel(request))
    if not typer.confirm(question, default=False, err=True):
        raise _fail("Not answered.", "usage")


def _answered(request: ApprovalRequest, as_json: bool) -> None:
    if as_json:
        print_json(request.to_json_object())
    else:
        out().print(Text(f"{request.request_id}: {_state_text(request)}"))


def _state_text(request: ApprovalRequest) -> str:
    if left := open_people(request):
        people = ", ".join(visible(str(each["answered_by"])) for each in request.agreed)
        return f"agreed: {people}; still needed: {visible(left)}"
    return f"{request.status.value} by {visible(request.answered_by or '')}"


@app.command()
def watch(
    request: Annotated[
        str, typer.Argument(metavar="[REQUEST]", help="Wait for this one's answer.")
    ] = "",
    url: Url = "",
    timeout: Annotated[
        float, typer.Option("--timeout", "-t", min=0, help="Seconds to watch; 0: without end.")
    ] = 0,
    interval: Annotated[
        float, typer.Option("--interval", min=0.05, help="Seconds between two looks.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Print what happens to requests as it happens, or wait for the answer to one.

    For one request the exit code is its state: 0 approved, 4 rejected or closed, 5 expired, 6 still
    pending at the end.
    """
    deadline = None
    if timeout:
        deadline = time.monotonic() + timeout
    with _store(url, create=not request) as store:
        if request:
            _wait_for(store, request, deadline, interval, as_json)
        seen = store.position()
        with contextlib.suppress(KeyboardInterrupt), open_endings(store) as endings:
            while deadline is None or time.monotonic() < deadline:
                endings.expired()
                for entry in store.log_entries(seen):
                    seen = entry.seq
                    _print_entry(entry, as_json)
                time.sleep(interval)


def _print_entry(entry: LogEntry, as_json: bool) -> None:
    if as_json:
        line = {
            "seq": entry.seq,
            "kind": entry.kind.value,
            "request_id": entry.request_id,
            **entry.data,
        }
        sys.stdout.write(f"{json.dumps(line, ensure_ascii=True)}\n")
        # watch --json | jq: a pipe is buffered, and the next entry may come in an hour
        sys.stdout.flush()
        return
    fields = []
    for key, value in entry.data.items():
        fields.append(f"{key}={visible(str(value))}")
    line_start = f"{entry.seq} {entry.kind.value} {entry.request_id}"
    out().print(Text(f"{line_start} {' '.join(fields)}"))


@app.command("log")
def answers_log(
    url: Url = "",
    by: Annotated[str, typer.Option("--by", help="Only answers of this person.")] = "",
    tool: Annotated[str, typer.Option("--tool", help="Only of this tool, by name or id.")] = "",
    since: Annotated[
        str, typer.Option("--since", help="Only from then on: 30m, 12h, 7d, or a date in UTC.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List who answered what, in order, as the evidence log has it."""
    with _store(url) as store:
        found = []
        for entry in _answer_entries(store, _start_of(since, store.now())):
            request = store.get(entry.request_id)
            if by and entry.data.get("by") != by:
                continue
            if tool and tool not in (request.tool_name, request.tool_id):
                continue
            found.append(_answer_row(entry, request))
        if as_json:
            print_json(found)
            return
        rows = [tuple(str(cell) for cell in row.values()) for row in found]
        headings = ("Request", "At", "By", "Roles", "Answer", "Way", "Tool", "After (s)")
        _print_table("Answers", headings, rows)


def _answer_entries(store: ApprovalStore, start: datetime | None) -> Iterator[LogEntry]:
    seen = 0
    while entries := store.log_entries(seen):
        for entry in entries:
            if entry.kind is ApprovalLogKind.ANSWERED and (start is None or _at(entry) >= start):
                yield entry
        seen = entries[-1].seq


def _at(entry: LogEntry) -> datetime:
    return from_us(entry.at_us)


def _answer_row(entry: LogEntry, request: ApprovalRequest) -> dict[str, Any]:
    return {
        "request_id": entry.request_id,
        "at": _at(entry).isoformat(timespec="seconds"),
        "by": entry.data.get("by", ""),
        "roles": ", ".join(entry.data.get("roles") or ()),
        "answer": entry.data.get("status", ""),
        # an older version recorded none
        "way": entry.data.get("way", ""),
        "tool": request.tool_name,
        "waited_s": round((_at(entry) - request.created_at).total_seconds(), 1),
    }


def _start_of(since: str, now: datetime) -> datetime | None:
    """Return when ``--since`` begins.

    Raises:
        typer.Exit: it is neither a span of time nor a date.
    """
    if not since:
        return None
    number, unit = since[:-1], since[-1:]
    if number.isdecimal() and unit in _UNITS:
        return now - int(number) * _UNITS[unit]
    try:
        start = datetime.fromisoformat(since)
    except ValueError:
        raise _fail("--since takes 30m, 12h, 7d, or a date such as 2026-11-27.", "usage") from None
    return start.replace(tzinfo=UTC) if start.tzinfo is None else start


def _wait_for(
    store: ApprovalStore, ref: str, deadline: float | None, interval: float, as_json: bool
) -> None:
    while True:
        found = _find(store, ref)
        late = deadline is not None and time.monotonic() >= deadline
        if found.status is not ApprovalStatus.PENDING or late:
            break
        time.sleep(interval)
    if as_json:
        print_json(found.to_json_object())
    else:
        out().print(Text(f"{found.request_id}: {found.status.value}"))
    name = _WAIT_EXITS.get(found.status, "conflict")
    raise typer.Exit(EXIT_CODES[name])


@app.command()
def serve(
    url: Url = "",
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0: any free one.")
    ] = 8765,
    who: Who = "",
    role: Roles = None,
    public_url: Annotated[
        str,
        typer.Option(
            "--public-url", help="https address of the TLS proxy in front.", show_default=False
        ),
    ] = "",
    identity_header: Annotated[
        str,
        typer.Option(
            help="Header in which the proxy states who answers, such as X-Forwarded-User.",
            show_default=False,
        ),
    ] = "",
    roles_header: Annotated[
        str,
        typer.Option(help="Header with that person's roles, by commas.", show_default=False),
    ] = "",
    proxy_secret: Annotated[
        str,
        typer.Option(
            envvar=Env.APPROVALS_PROXY,
            help="What the proxy sends in X-Agenttool-Proxy-Secret; better in the environment.",
            show_default=False,
        ),
    ] = "",
    proxy_address: Annotated[
        str, typer.Option(help="The proxy's address, instead or beside.", show_default=False)
    ] = "",
) -> None:
    """Serve the approvals page on this machine, until interrupted.

    With --identity-header each person answers in their own name, as a reverse proxy states it.
    """
    with _store(url, create=True) as store, open_endings(store) as endings, endings.watching():
        # both need the extra web
        from agenttool_otel.approvals.web.server import ApprovalsServer, ProxyIdentity

        if not identity_header and (roles_header or proxy_address):
            raise _fail("--roles-header and --proxy-address need --identity-header.", "usage")
        proxy = None
        if identity_header:
            proxy = ProxyIdentity(identity_header, roles_header, proxy_secret, proxy_address)
        try:
            server = ApprovalsServer(
                store,
                on_rejected=endings.rejected,
                host=host,
                port=port,
                answered_by=who,
                roles=tuple(role or ()),
                public_url=public_url or None,
                proxy=proxy,
            )
        except OSError as error:
            raise _fail(f"The address can't be used: {error.strerror}.", "usage") from None
        # not on standard output: the link is a credential, and stdout goes to a service's log
        console = Console(stderr=True)
        who_answers = f"whom {identity_header} names" if identity_header else server.answered_by
        console.print(Text(f"Approvals of {store.url} as {who_answers}", style="bold"))
        if identity_header:
            console.print("People sign in at the proxy in front:")
            console.print(Text(server.url), soft_wrap=True)
        else:
            console.print("Open this link; it holds the token, which is not shown again:")
            console.print(Text(server.sign_in_url), soft_wrap=True)
        console.print("Ctrl-C ends it.", style="dim")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
        server.close()


@app.command()
def notify(
    url: Url = "",
    to: Annotated[
        str, typer.Option("--to", help="Address that gets notices.", show_default=False)
    ] = "",
    format: Annotated[str, typer.Option(help="cloudevents, slack or teams.")] = "cloudevents",
    remind: Annotated[
        str, typer.Option(help="Remind after so long, such as 30m.", show_default=False)
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with several targets, instead.", show_default=False),
    ] = None,
    page: Annotated[
        str, typer.Option(help="Address of the approvals page, for links.", show_default=False)
    ] = "",
    state: Annotated[Path, typer.Option(help="File that keeps what was sent.")] = Path(
        "agenttool-notices.json"
    ),
    answers_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Take signed answers on this port.", show_default=False
        ),
    ] = None,
    answers_host: Annotated[str, typer.Option(help="Address to take them on.")] = "127.0.0.1",
    answers_public_url: Annotated[
        str,
        typer.Option(
            help="https address of the TLS proxy in front of them, where they come from elsewhere.",
            show_default=False,
        ),
    ] = "",
    role: Annotated[
        list[str] | None,
        typer.Option("--role", help="A role that answers may state; may be repeated."),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", min=0.05, help="Seconds between two looks.")
    ] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
) -> None:
    """Send signed notices of requests to chats and programs, and take signed answers.

    A notice has no arguments: it links to the request on the page.
    """
    from agenttool_otel.cli import notifying

    with _store(url, create=True) as store:
        address = notifying.answers_address(answers_host, answers_port, answers_public_url)
        plan = notifying.plan_of(to, format, remind, config, page)
        notifier = notifying.notifier_of(store, plan, state, takes_answers=address is not None)
        with notifying.only_one(state):
            if once:
                out().print(Text(f"{notifying.look_once(notifier)} sent"))
                return
            with open_endings(store) as endings, endings.watching():
                try:
                    notifying.run(
                        notifier,
                        interval,
                        address=address,
                        roles=tuple(role or ()),
                        on_rejected=endings.rejected,
                    )
                except OSError as error:
                    raise _fail(f"The address can't be used: {error.strerror}.", "usage") from None


@app.command()
def verify(
    url: Url = "",
    anchor: Annotated[
        str,
        typer.Option(
            help="ENTRIES:HEAD of an earlier check, which the log has to continue.",
            show_default=False,
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Check the evidence log and all rows: every entry in order, the head, and each row against its
    last entry.
    """
    # 1042:9f86d081...
    entries, _, head = anchor.partition(":")
    if anchor and not (entries.isdecimal() and head):
        raise _fail("An anchor is ENTRIES:HEAD, as verify prints them.", "usage")
    with _store(url) as store:
        known = None
        if anchor:
            known = (int(entries), head)
        report = store.verify_chain(anchor=known)
        if as_json:
            print_json(report._asdict())
        elif report.ok:
            out().print(Text(f"{report.entries} entries, unbroken; head {report.head}"))
        else:
            place = "broken"
            if report.broken_at is not None:
                place += f" at entry {report.broken_at}"
            problem = visible(report.problem or "")
            out().print(Text(f"{place}: {problem}", style="red"))
        if not report.ok:
            raise typer.Exit(EXIT_CODES["store_error"])


@app.command()
def rotate_key(
    url: Url = "",
    new_key_file: Annotated[
        Path | None,
        typer.Option(
            help="The new key; made if it is not there. Left out, the file beside a SQLite store is replaced."
        ),
    ] = None,
) -> None:
    """Seal the whole store under another key. Processes that have the old one are refused from then
    on.
    """
    with _store(url) as store:
        new_key = None
        if new_key_file is not None:
            new_key = load_or_create_key_file(new_key_file, "")
        store.rotate_key(new_key)
        report = store.verify_chain()
        out().print(Text(f"sealed under the new key; anchor {report.entries}:{report.head}"))


@app.command()
def grants(url: Url = "", as_json: AsJson = False) -> None:
    """List the remembered approvals that hold now."""
    with _store(url) as store:
        found = store.list_grants()
        if as_json:
            print_json([grant.to_json_object() for grant in found])
            return
        rows = []
        for grant in found:
            rows.append(
                (
                    grant.grant_id,
                    grant.tool_id,
                    described(grant),
                    grant.scope,
                    _in_scope(grant),
                    grant.granted_by,
                    grant.expires_at.isoformat(timespec="seconds"),
                )
            )
        headings = ("Grant", "Tool", "What", "Scope", "For", "Granted by", "Until")
        _print_table("Grants", headings, rows)


def _in_scope(grant: Grant) -> str:
    """The session, actor, tenant or directories that a grant holds for."""
    scopes = {
        "session": grant.session_id,
        "actor": grant.actor_id,
        "tenant": grant.tenant,
        "root": ", ".join(grant.roots),
    }
    return scopes.get(grant.scope) or ""


@app.command()
def revoke(
    grant: Annotated[str, typer.Argument(metavar="GRANT", help="Grant id.")],
    url: Url = "",
    who: Who = "",
) -> None:
    """Withdraw a remembered approval."""
    with _store(url) as store:
        store.revoke(grant, revoked_by=who or local_identity())
        out().print(Text(f"{visible(grant)}: revoked"))


@app.command("accept-clock")
def accept_clock(url: Url = "") -> None:
    """Accept this machine's clock where it is far ahead of the store: what expired meanwhile ends
    now.
    """
    with _store(url) as store:
        ahead = store.accept_clock()
        out().print(Text(f"the store's time was moved ahead by {ahead}"))
