"""Write docs/configuration.md from the settings themselves: names, variables, defaults and what
they mean.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from inspect import cleandoc
from pathlib import Path
from typing import Any

from agenttool_otel.context.settings import Settings

TARGET = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
HEAD = """# Configuration

Made by `make docs` from `Settings` (context/settings.py); edit the descriptions there.

What code says (`Governor(policy_mode="shadow")`, `configure(...)`) wins over the environment, which wins over the
default. Names in code that are no setting are refused. So is a variable that is nearly one of these, such as
one with `PRESETT`: until it is corrected, every call is denied. `agenttool doctor` prints what is in force here.

| variable | setting | default | what it is |
|---|---|---|---|
"""
TAIL = """
No settings, because no code states them, but read where they are needed:

| variable | what it is |
|---|---|
| `AGENTTOOL_APPROVALS_KEY` | seals the approval store; needed where processes share one (approvals.md) |
| `AGENTTOOL_APPROVALS_PROXY_SECRET` | what the proxy before the approvals page sends (approvals.md) |
| `AGENTTOOL_APPROVALS_NOTIFY_SECRET` | signs what `agenttool approvals notify` sends (approvals.md) |
| `AGENTTOOL_APPROVALS_ANSWERS_SECRET` | signs the answers that it takes |
| `AGENTTOOL_DIGEST_KEY` | keys the digests in records and events; needed where processes compare theirs (records.md) |
| `AGENTTOOL_OPA` | path of an OPA program, for what `agenttool policy` checks with it |
"""
_MENTIONED = re.compile(r" ?\(``(?:AGENTTOOL|OTEL)_[A-Z_]+``(?:, ([^)]*))?\)")


def meanings(doc: str) -> dict[str, str]:
    """Return what a class's docstring says of each attribute.

    Args:
        doc: the docstring.
    """
    found: dict[str, str] = {}
    name = ""
    _, _, listed = cleandoc(doc).partition("Attributes:\n")
    for line in listed.splitlines():
        stated = re.match(r"    (\w+): (.+)", line)
        if stated:
            name = stated[1]
            found[name] = stated[2]
        elif line.strip() and name:
            found[name] += " " + line.strip()
    return found


def shown(default: Any) -> str:
    """Return a default as somebody would write it into a variable.

    Args:
        default: the default.
    """
    if default in ("", ()):
        return ""
    text = (
        str(default).lower()
        if isinstance(default, bool)
        else f"{default:g}"
        if type(default) is float
        else str(default)
    )
    return f"`{text}`"


def configuration() -> str:
    """Return the document.

    Raises:
        KeyError: the docstring leaves a setting out.
    """
    described = meanings(Settings.__doc__ or "")
    variables = Settings.variables()
    rows = []
    for spec in fields(Settings):
        if spec.name not in variables:
            continue  # what was found out about the others
        meaning = _MENTIONED.sub(
            lambda match: f" ({match[1]})" if match[1] else "", described[spec.name]
        )
        meaning = meaning.replace("``", "`").replace("|", "\\|").rstrip(".")
        rows.append(
            f"| `{variables[spec.name]}` | `{spec.name}` | {shown(spec.default)} | {meaning} |"
        )
    return HEAD + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    TARGET.write_text(configuration(), encoding="utf-8")
    sys.exit(0)
