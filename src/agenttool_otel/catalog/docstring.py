"""What a docstring says of a tool: guidance for models, and one line for each parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import docstring_parser

__all__ = ["read_docstring"]


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description and the parameter descriptions of a callable.

    Args:
        function: the callable; Google, NumPy, reST and Epydoc styles are understood.
    """
    text = inspect.getdoc(function) or ""
    if not text:
        return "", {}
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, {}
    parameters = {param.arg_name: param.description or "" for param in parsed.params}
    body = "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
    return body or text, {name: value for name, value in parameters.items() if value}
