"""The page's HTML: the templates, in which every text is escaped and every hidden character is
spelt out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import jinja2
from markupsafe import Markup, escape

from agenttool_otel.approvals.display import (
    arguments_text,
    describe_arguments,
    describe_effects,
    describe_suggestion,
    duration,
    effects_text,
    open_people,
    remaining,
    visible,
)
from agenttool_otel.approvals.store.clock import to_us

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


def _zip_self(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return names as the values and texts of options."""
    return [(name, visible(name)) for name in names]


def _age(since_us: int, now_us: int) -> str:
    return duration(max(0, now_us - since_us) // 1_000_000)


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
        "in_us": to_us,
        "marked": _marked,
        "sentence": _sentence,
        "zip_self": _zip_self,
    }
    environment.globals |= {
        "describe_arguments": describe_arguments,
        "describe_effects": describe_effects,
        "effects_text": effects_text,
        "age": _age,
        "open_people": open_people,
        "remaining": remaining,
    }
    return environment


ENVIRONMENT: Final = _environment()
