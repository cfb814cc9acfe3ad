"""The page's HTML: everything from a request is made visible and escaped, and nothing is left out."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agenttool_otel.approvals.display import arguments_text, describe_arguments, describe_suggestion, remaining, visible
from agenttool_otel.approvals.grants import acceptable
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.names import ApprovalStatus

__all__ = ["DONE", "FormState", "detail_page", "list_page", "login_page", "message_page"]

DONE: Final[Mapping[str, str]] = {
    "approved": "Approved. The call runs once, exactly as shown, when its agent resumes it.",
    "edited": "Approved with your arguments. They are validated and decided again before anything runs.",
    "rejected": "Rejected. The call will not run.",
}
"""What a finished action says; the address holds only the word."""

_PEEK: Final = 160
_SPELT_OUT: Final = re.compile(r"\\u\{[0-9a-f]+\}")


@dataclass(frozen=True, slots=True)
class FormState:
    """What a person typed into a form that was refused.

    Attributes:
        error: why it was refused.
        reason: the typed reason.
        arguments: the typed arguments.
        action: approve, reject or edit.
    """

    error: str
    action: str
    reason: str = ""
    arguments: str = ""


def _h(text: str, *, keep: str = "") -> str:
    escaped = html.escape(visible(text, keep=keep), quote=True)
    return _SPELT_OUT.sub(lambda found: f"<mark>{found.group()}</mark>", escaped)


def _sentence(text: str) -> str:
    end = "" if text.endswith((".", "!", "?")) else "."
    return _h(f"{text[:1].upper()}{text[1:]}{end}")


def _attribute(text: str) -> str:
    return html.escape(visible(text), quote=True)


def _page(
    title: str,
    body: str,
    *,
    who: str = "",
    logout: str = "",
    now: datetime | None = None,
    live: str = "",
    state: str = "",
    summary: str = "",
) -> str:
    clock = f' data-now="{int(now.timestamp() * 1000)}"' if now is not None else ""
    main = f' data-live="{live}" data-state="{_attribute(state)}" data-summary="{_attribute(summary)}"' if live else ""
    reload = '<noscript><meta http-equiv="refresh" content="15"></noscript>' if live == "list" else ""
    session = (
        f'<span class="who">Answering as <strong>{_h(who)}</strong></span>'
        f'<form method="post" action="/logout"><input type="hidden" name="csrf" value="{_attribute(logout)}">'
        '<button class="quiet" type="submit">Sign out</button></form>'
        if who
        else ""
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_h(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/style.css">
<script src="/static/live.js" defer></script>
{reload}</head>
<body{clock}>
<a class="skip" href="#content">Skip to content</a>
<header class="bar"><div><a class="brand" href="/">Tool approvals</a>{session}</div></header>
<p id="announce" class="sr" role="status" aria-live="polite"></p>
<main id="content"{main}>
{body}
</main>
<footer><p>Every answer is recorded. An approval covers one run of exactly these arguments.</p></footer>
</body>
</html>
"""


def login_page(error: str = "") -> str:
    """Return the page that asks for the token.

    Args:
        error: why the last one was not accepted.
    """
    alert = (
        f'<div class="alert" role="alert" id="error"><strong>Not signed in.</strong> {_h(error)}</div>' if error else ""
    )
    described = ' aria-describedby="error hint" aria-invalid="true"' if error else ' aria-describedby="hint"'
    return _page(
        "Sign in · Tool approvals",
        f"""<div class="narrow">
<h1>Sign in</h1>
{alert}<form class="card" method="post" action="/login">
<div class="field"><label for="token">Token</label>
<p class="hint" id="hint">It was shown in the terminal that started this page.</p>
<input type="password" id="token" name="token" autocomplete="off" spellcheck="false" required
 autofocus{described}></div>
<button class="main" type="submit">Sign in</button>
</form></div>""",
    )


def message_page(title: str, message: str, *, who: str = "", logout: str = "") -> str:
    """Return a page that says what went wrong."""
    return _page(
        f"{title} · Tool approvals",
        f'<h1>{_h(title)}</h1><div class="alert" role="alert">{_sentence(message)}</div>'
        '<p><a href="/">Back to the list</a></p>',
        who=who,
        logout=logout,
    )


def list_page(
    pending: list[ApprovalRequest],
    recent: list[ApprovalRequest],
    total: int,
    *,
    now: datetime,
    state: str,
    who: str,
    logout: str,
    done: str = "",
) -> str:
    """Return the list of pending requests and what became of the last others.

    Args:
        pending: the pending requests to show, soonest expiry first.
        recent: requests that are not pending, newest first.
        total: how many are pending in all.
        now: the store's time.
        state: changes whenever the page would.
        who: who answers.
        logout: CSRF token of the sign-out form.
        done: a key of ``DONE``.
    """
    summary = "Nothing waits for an answer" if not total else f"{total} waiting for an answer"
    banner = f'<div class="alert done" role="status"><strong>Done.</strong> {_h(DONE[done])}</div>' if done else ""
    if pending:
        cards = "".join(_card(request, now) for request in pending)
        listing = f'<ul class="list">{cards}</ul>'
        if total > len(pending):
            listing += f'<p class="note">Showing the {len(pending)} that expire first, of {total}.</p>'
    else:
        listing = (
            '<div class="card empty"><strong>Nothing to answer</strong>'
            "New requests appear here as soon as a tool asks.</div>"
        )
    table = ""
    if recent:
        rows = "".join(_recent_row(request) for request in recent)
        table = (
            '<section aria-labelledby="recent"><h2 id="recent">Recently closed</h2><div class="card"><table>'
            '<thead><tr><th scope="col">Tool</th><th scope="col">State</th><th scope="col">By</th>'
            f'<th scope="col">Asked for</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
        )
    return _page(
        f"({total}) Tool approvals" if total else "Tool approvals",
        f'<h1>Pending requests</h1><p class="lead">{summary}. Open a request to see all of it before you answer.</p>'
        f"{banner}{listing}{table}",
        who=who,
        logout=logout,
        now=now,
        live="list",
        state=state,
        summary=summary,
    )


def _card(request: ApprovalRequest, now: datetime) -> str:
    one_line = visible(json.dumps(request.arguments_preview, ensure_ascii=False))
    peek = one_line[:_PEEK]
    more = f' <span class="note">and {len(one_line) - _PEEK} more characters</span>' if len(one_line) > _PEEK else ""
    address = f"/requests/{_attribute(request.request_id)}"
    return f"""<li class="card"><article aria-label="{_attribute(request.tool_name)}">
<div class="row"><h2><a id="open-{_attribute(request.request_id)}" href="{address}">{_h(request.tool_name)}</a></h2>
{_clock(request, now)}</div>
<p class="meta">for {_h(request.actor_id or "an unknown actor")}{f" · {_h(request.tenant)}" if request.tenant else ""}
{f" · {_h(request.rule_ref)}" if request.rule_ref else ""}</p>
<p class="why">{_h(request.message)}</p>
<p class="peek"><code>{_h(peek)}</code>{more}</p>
<a href="{address}" aria-hidden="true" tabindex="-1">Review and answer</a>
</article></li>"""


def _recent_row(request: ApprovalRequest) -> str:
    return (
        f'<tr><td><a href="/requests/{_attribute(request.request_id)}">{_h(request.tool_name)}</a></td>'
        f"<td>{_badge(request)}</td><td>{_h(request.answered_by or request.closed_reason or '–')}</td>"
        f"<td>{_h(request.actor_id or 'unknown')}</td></tr>"
    )


def _badge(request: ApprovalRequest) -> str:
    word = request.status.value
    if request.status is ApprovalStatus.CONSUMED:
        label = f"used: {request.outcome.value}" if request.outcome else "used: running"
    else:
        label = word
    return f'<span class="badge {word}">{_h(label)}</span>'


def _clock(request: ApprovalRequest, now: datetime) -> str:
    if request.expires_at is None:
        return ""
    text = remaining(request, now)
    text = text if text == "expired" else f"expires in {text}"
    return (
        f'<time class="clock" datetime="{request.expires_at.isoformat()}" '
        f'data-expires="{int(request.expires_at.timestamp() * 1000)}">{text}</time>'
    )


def detail_page(
    request: ApprovalRequest,
    *,
    now: datetime,
    who: str,
    logout: str,
    csrf: str,
    form: FormState | None = None,
) -> str:
    """Return one request, and the forms that answer it while it is pending.

    Args:
        request: the request.
        now: the store's time.
        who: who answers.
        logout: CSRF token of the sign-out form.
        csrf: CSRF token of the answer forms.
        form: what was typed into a refused form.
    """
    pending = request.status is ApprovalStatus.PENDING
    alert = (
        f'<div class="alert" role="alert" id="error"><strong>Not answered.</strong> {_sentence(form.error)}</div>'
        if form is not None
        else ""
    )
    changed = (
        '<div class="alert" role="alert" id="changed" hidden><strong>This request has changed.</strong> '
        f'<a href="/requests/{_attribute(request.request_id)}">Show it as it is now</a></div>'
    )
    facts = [
        ("Tool", f"{request.tool_name} ({request.tool_id})"),
        ("For", request.actor_id or "unknown"),
        ("Tenant", request.tenant),
        ("Session", request.session_id),
        ("Reason", request.message),
        ("Rule", request.rule_ref),
        ("Policy", request.policy_revision),
        ("May answer", ", ".join(request.approver_roles) or "anybody who is signed in"),
        ("Answered by", request.answered_by),
        ("Said", request.answer_reason),
        ("Closed because", request.closed_reason),
        ("Asks again for", request.supersedes),
        ("Invocation", request.invocation_id),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{_h(value)}</dd>" for name, value in facts if value)
    safer = ""
    if request.alternatives:
        blocks = "".join(f"<pre>{_h(arguments_text(one), keep=chr(10))}</pre>" for one in request.alternatives)
        safer = f'<section class="card"><h2>Safer instead</h2>{blocks}</section>'
    edited = '<p class="note">It was approved with edited arguments.</p>' if request.edited else ""
    forms = _forms(request, csrf, form) if pending else ""
    return _page(
        f"{request.tool_name} · Tool approvals",
        f"""<p><a href="/">All requests</a></p>
{alert}{changed}<div class="row"><h1>{_h(request.tool_name)}</h1>{_clock(request, now) if pending else ""}</div>
<p class="lead">{_badge(request)}</p>
<section class="card" aria-label="Facts"><dl class="facts">{listed}</dl></section>
<section class="card" aria-labelledby="args"><h2 id="args">Arguments</h2>
<pre id="arguments-shown" tabindex="0">{_h(arguments_text(request.arguments_preview), keep=chr(10))}</pre>
<p class="note">{_h(describe_arguments(request))}</p>{edited}</section>
{safer}{forms}""",
        who=who,
        logout=logout,
        now=now,
        live="detail",
        state=request.status.value,
        summary=f"This request is {request.status.value} now",
    )


def _forms(request: ApprovalRequest, csrf: str, form: FormState | None) -> str:
    action = f"/requests/{_attribute(request.request_id)}"
    hidden = f'<input type="hidden" name="csrf" value="{_attribute(csrf)}">'

    def refused(name: str, attribute: str) -> str:
        return attribute if form is not None and form.action == name else ""

    remember = ""
    offered = [(number, one) for number, one in enumerate(request.suggested_updates) if acceptable(request, one)]
    if offered:
        options = "".join(
            f'<label><input type="radio" name="remember" value="{number}"> <span>{_h(describe_suggestion(one))}'
            f"<code>{_h(json.dumps(one, ensure_ascii=False))}</code></span></label>"
            for number, one in offered
        )
        remember = (
            "<fieldset><legend>Remember</legend>"
            '<label><input type="radio" name="remember" value="" checked> Only this once</label>'
            f"{options}</fieldset>"
        )
    invalid = ' aria-invalid="true" aria-describedby="error"'
    reason = form.reason if form is not None and form.action == "reject" else ""
    typed = form.arguments if form is not None and form.action == "edit" else ""
    # plain ASCII JSON: a hidden character stays an escape that the person can see and edit
    start = typed or json.dumps(request.arguments_preview, indent=2, ensure_ascii=True)
    return f"""<div class="answers">
<form class="card" method="post" action="{action}/approve" aria-labelledby="approve-title">
<h2 id="approve-title">Approve</h2>{hidden}{remember}
<p class="hint">Runs once, exactly as shown above.</p>
<button class="yes" type="submit" id="approve">Approve</button></form>
<form class="card" method="post" action="{action}/reject" aria-labelledby="reject-title">
<h2 id="reject-title">Reject</h2>{hidden}
<div class="field"><label for="reason">Reason</label>
<input type="text" id="reason" name="reason" maxlength="2000" required autocomplete="off"
 value="{_attribute(reason)}"{refused("reject", invalid)}></div>
<button class="no" type="submit" id="reject">Reject</button></form>
</div>
<details class="card"{refused("edit", " open")}><summary>Edit the arguments</summary>
<form method="post" action="{action}/edit">{hidden}
<div class="field"><label for="arguments">Arguments as JSON</label>
<p class="hint" id="edit-hint">What you leave as shown keeps its real value, also where it is redacted.
The result is validated and decided again.</p>
<textarea id="arguments" name="arguments" spellcheck="false" autocomplete="off"
{refused("edit", invalid) or ' aria-describedby="edit-hint"'}>{html.escape(start)}</textarea></div>
<button class="main" type="submit" id="edit">Approve with these arguments</button></form></details>"""
