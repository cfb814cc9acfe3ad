"""What is decided of arguments that were read from JSON: the form that they have now, because that is what runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenttool_otel.records.conversion import JsonLike, bytes_tag, to_policy_value

__all__ = ["decided_form"]


def decided_form(read: Mapping[str, Any], raw: Mapping[str, JsonLike]) -> dict[str, JsonLike]:
    """Return the JSON form of arguments as they were read: converted, and with the defaults of nested models.

    A reader may lower the case of a text, decode it, take it from another key or add what was left out. What has no
    JSON form of its own (a secret, an object of a foreign class) is shown as the JSON that it was read from.

    Args:
        read: arguments by name, as they run.
        raw: the JSON arguments that they were read from.
    """
    form = to_policy_value(dict(read))
    if not isinstance(form, dict):
        return {"$error": "unreadable"}
    return {name: _shown(value, raw.get(name)) for name, value in form.items()}


def _shown(form: JsonLike, raw: JsonLike) -> JsonLike:
    """Put the JSON of what can only be shown by its type into its place; the depth is that of ``to_policy_value``."""
    if raw is None:
        return form
    if isinstance(form, dict):
        if form.keys() == {"$type"}:
            return raw
        if form.keys() == {"$bytes"}:
            return raw if isinstance(raw, str) and bytes_tag(raw.encode("utf-8", "replace")) == form else form
        if isinstance(raw, dict):
            return {name: _shown(value, raw.get(name)) for name, value in form.items()}
    elif isinstance(form, list) and isinstance(raw, list) and len(form) == len(raw):
        return [_shown(value, part) for value, part in zip(form, raw, strict=True)]
    return form
