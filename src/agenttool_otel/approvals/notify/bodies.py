"""What a notice says: no argument, no text that a rule or a person wrote, and a link to the request.

A chat's server keeps what it gets, and many people read it. What is asked is on the page, behind
its sign-in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from agenttool_otel.approvals.display import duration, visible
from agenttool_otel.approvals.notify.notices import Notice, NoticeKind
from agenttool_otel.approvals.notify.targets import Format
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import EVENT_SOURCE

EVENT_TYPE: Final = "agenttool.approval."
"""Begins the type of each CloudEvent; the notice's kind follows."""

_HEADINGS: Final = {
    NoticeKind.ASKED: "Approval needed",
    NoticeKind.REMINDER: "Still waiting for approval",
    NoticeKind.ESCALATED: "Not answered so far: approval needed",
    NoticeKind.EXPIRING: "Approval expires soon",
    NoticeKind.ANSWERED: "Answered",
    NoticeKind.EXPIRED: "Expired without an answer",
    NoticeKind.WITHDRAWN: "Not needed any more",
}
_MAX_CHARS: Final = 200
JSON_TYPE: Final = "application/json"


def body_of(
    format: Format, notice: Notice, message_id: str, page: str, now: datetime, ticket: str
) -> tuple[str, bytes]:
    """Return the content type and the body of a notice.

    Args:
        format: what the target takes.
        notice: the notice.
        message_id: its id.
        page: address of the approvals page.
        now: the store's time.
        ticket: what an answer to it has to carry; empty where none is taken. Chats don't get it.

    Raises:
        ConfigurationError: the extra ``notify`` is not installed.
    """
    link = f"{page}/requests/{notice.request.request_id}"
    if format is Format.CLOUDEVENTS:
        return _cloud_event(notice, message_id, link, now, ticket)
    heading = _HEADINGS[notice.kind]
    return _card(format, heading, _facts(notice, now), link)


def summary_body(format: Format, notices: Sequence[Notice], page: str) -> tuple[str, bytes]:
    """Return the content type and the body of one card for many notices.

    Args:
        format: a chat's format.
        notices: the notices.
        page: address of the approvals page.
    """
    kinds = {notice.kind: 0 for notice in notices}
    for notice in notices:
        kinds[notice.kind] += 1
    facts = [(_HEADINGS[kind], str(number)) for kind, number in kinds.items()]
    return _card(format, f"{len(notices)} more requests", facts, f"{page}/")


def _facts(notice: Notice, now: datetime) -> list[tuple[str, str]]:
    request = notice.request
    facts = [
        ("Tool", request.tool_name),
        ("Risk", str(request.profile.get("risk_level", ""))),
        ("Rule", request.rule_ref),
        ("May answer", ", ".join([*request.approver_roles, *request.required_roles])),
        ("Asked", f"{duration(_seconds(request.created_at, now))} ago"),
    ]
    if notice.kind is NoticeKind.ANSWERED:
        facts.append(("Answer", request.status.value))
    elif request.expires_at is not None and request.expires_at > now:
        facts.append(("Expires in", duration(_seconds(now, request.expires_at))))
    return [(label, visible(text)[:_MAX_CHARS]) for label, text in facts if text]


def _seconds(start: datetime, end: datetime) -> int:
    return max(0, int((end - start).total_seconds()))


def _card(
    format: Format, heading: str, facts: Sequence[tuple[str, str]], link: str
) -> tuple[str, bytes]:
    make = _slack_message if format is Format.SLACK else _teams_message
    return JSON_TYPE, json.dumps(make(heading, facts, link)).encode()


def _slack_message(heading: str, facts: Sequence[tuple[str, str]], link: str) -> dict[str, Any]:
    # plain_text: as mrkdwn a tool named "<!channel>" would call everybody
    lines = [{"type": "plain_text", "text": f"{label}: {text}"} for label, text in facts]
    button = {"type": "button", "text": _slack_text("Open the request"), "url": link}
    return {
        # read aloud and in notifications, as mrkdwn: nothing of the request is in it
        "text": heading,
        "blocks": [
            {"type": "header", "text": _slack_text(heading)},
            {"type": "section", "fields": lines},
            {"type": "actions", "elements": [button]},
        ],
    }


def _slack_text(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def _teams_message(heading: str, facts: Sequence[tuple[str, str]], link: str) -> dict[str, Any]:
    # runs: a TextBlock and a FactSet would make a link of a tool named "[Approve](https://...)"
    lines = [
        {
            "type": "RichTextBlock",
            "inlines": [
                {"type": "TextRun", "text": f"{label}: ", "weight": "Bolder"},
                {"type": "TextRun", "text": text},
            ],
        }
        for label, text in facts
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "TextBlock", "text": heading, "size": "Large", "wrap": True}, *lines],
        "actions": [{"type": "Action.OpenUrl", "title": "Open the request", "url": link}],
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


def _cloud_event(
    notice: Notice, message_id: str, link: str, now: datetime, ticket: str
) -> tuple[str, bytes]:
    try:
        from cloudevents.core.bindings.http import to_structured_event
        from cloudevents.core.v1.event import CloudEvent
    except ImportError:
        raise ConfigurationError(
            "CloudEvents need a package: pip install 'agenttool-otel[notify]'"
        ) from None
    request = notice.request
    data = {
        "request_id": request.request_id,
        "invocation_id": request.invocation_id,
        "status": request.status.value,
        "tool_name": request.tool_name,
        "rule": request.rule_ref,
        "risk_level": request.profile.get("risk_level"),
        "approver_roles": request.approver_roles,
        "required_roles": request.required_roles,
        "approvals_needed": request.approvals_needed,
        "created_at": request.created_at.isoformat(),
        "expires_at": None if request.expires_at is None else request.expires_at.isoformat(),
        "url": link,
    }
    if ticket:
        data["ticket"] = ticket
    attributes = {
        "id": message_id,
        "source": EVENT_SOURCE,
        "type": f"{EVENT_TYPE}{notice.kind.value}",
        "subject": request.request_id,
        "time": now,
        "datacontenttype": JSON_TYPE,
    }
    event: Any = CloudEvent(attributes, {k: v for k, v in data.items() if v is not None})
    message = to_structured_event(event)
    headers = {name.lower(): value for name, value in message.headers.items()}
    return headers["content-type"], bytes(message.body)
