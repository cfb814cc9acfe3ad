"""The page's HTML: the templates, in which every text is escaped and every hidden character is
spelt out.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import jinja2
from markupsafe import Markup, escape

from agenttool_otel.approvals.display import (
    arguments_text,
    describe_arguments,
    describe_effects,
    describe_suggestion,
    effects_text,
    open_people,
    remaining,
    visible,
)

_SPELT_OUT: Final = re.compile(r"\\u\{[0-9a-f]+\}")


def _finalize(value: Any) -> Any:
    """Make each text visible that a template prints, so that no template can forget it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _marked(text: str, keep: str = "") -> Markup:
    """Escape a text and highlight the characters that are spelt out; for element content, not for
    attributes.
    """
    escaped = str(escape(visible(text, keep=keep)))
    return Markup(_SPELT_OUT.sub(r"<mark>\g<0></mark>", escaped))  # noqa: S704 - is escaped


def _sentence(text: str) -> str:
    end = "" if text.endswith((".", "!", "?")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


def _compact_json(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agenttool_otel.approvals.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "arguments_text": arguments_text,
        "compact_json": _compact_json,
        "describe_suggestion": describe_suggestion,
        "marked": _marked,
        "sentence": _sentence,
    }
    environment.globals |= {
        "describe_arguments": describe_arguments,
        "describe_effects": describe_effects,
        "effects_text": effects_text,
        "open_people": open_people,
        "remaining": remaining,
    }
    return environment


ENVIRONMENT: Final = _environment()
