"""Whether a repository's configuration leaves git's reading commands what they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agenttool_otel.readers.shell.git.layout import Layout
from agenttool_otel.readers.shell.tables import programs

_SECTION = re.compile(r'\[[ \t]*([A-Za-z0-9.-]+)([ \t]+"(?:[^"\\]|\\.)*")?[ \t]*\]')
_PATHS = {  # settings that name files, and what these may be called
    "core.hookspath": r"[\w./~-]+",
    "blame.ignorerevsfile": r"[\w./-]*ignore[\w.-]*",
    "mailmap.file": r"[\w./-]*mailmap[\w.-]*",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_PLAIN_HELPER = re.compile(r"[a-z-]*")  # a helper of git, or a program by its bare name
_CREDENTIAL_IN_URL = re.compile(r"://[^/@\s]+@")


def judge_config(content: bytes, layout: Layout, category: str = "") -> str:
    """Return why a repository's configuration may make git do more than read, or ``""``.

    ``category`` is that of a command that does more: such commands obey settings that reading ones
    do not look at.
    """
    obeyed = programs()["git_obeyed"].get(category, frozenset())
    content = content.replace(b"\r\n", b"\n")
    if _CONTROL.search(content):
        return "configuration that is not plain"
    text = content.decode("utf-8", "replace")
    section = ""
    name = ""
    for raw in text.split("\n"):
        line = raw.strip(" \t")
        if not line or line[0] in "#;":
            continue
        if line[0] != "[":
            reason = _judge_setting(section, name, line, layout, obeyed)
            if reason:
                return reason
            continue
        match = _SECTION.fullmatch(line)
        if match is None:
            return "configuration that is not plain"
        name = match[2] or ""
        section = match[1].lower()
        if name:
            section += ".*"  # [branch "main"]
    return ""


def _judge_setting(
    section: str,
    name: str,
    line: str,
    layout: Layout,
    obeyed: frozenset[str],
) -> str:
    """Return why one setting may make git do more than read, or an empty text."""
    key, _, value = (part.strip(" \t") for part in line.partition("="))
    setting = f"{section}.{key.lower()}"
    if setting in obeyed and _PLAIN_HELPER.fullmatch(value) is None:
        return f"configuration with {setting[:80]}"
    if setting == "core.worktree" and layout.is_worktree_setting(value):
        return ""
    is_plain = _KEY.fullmatch(key) is not None and not line.endswith("\\")
    if not is_plain or not _runs_nothing(section, key.lower(), value, layout.top):
        return f"configuration with {section[:40]}.{key[:40]}"
    if section in ("remote.*", "url.*") and _is_odd_address(name + value):
        return "address with a credential or a helper"
    return ""


def _is_odd_address(text: str) -> bool:
    # ext::sh -c x
    return "::" in text or _CREDENTIAL_IN_URL.search(text) is not None


def _runs_nothing(section: str, key: str, value: str, top: Path) -> bool:
    """Whether no reading command of git runs a program, or reads elsewhere, for a setting."""
    setting = f"{section}.{key}"
    values = programs()["git_values"]
    # pager.log has the row of pager.*
    row = setting if setting in values else f"{section}.*"
    for form in values.get(row, ()):
        if re.fullmatch(form, value):
            return True
    if setting in _PATHS:
        return _is_harmless_path(setting, value, top)
    # git 2.51 lets an alias stand in for a command that it means to drop
    if setting == "alias.whatchanged":
        return False
    allowed = programs()["git_config"].get(section, frozenset())
    return key in allowed or "*" in allowed


def _is_harmless_path(setting: str, value: str, top: Path) -> bool:
    """Whether a setting names a file within the checkout, or hooks that no reading command runs."""
    if re.fullmatch(_PATHS[setting], value, re.ASCII) is None:
        return False
    place = top / os.path.expanduser(value)
    # the one hook that a reading command runs, when it writes down what it saw
    if setting == "core.hookspath":
        hook = place / "post-index-change"
        return not hook.exists()
    real = Path(os.path.realpath(place))
    if not real.is_relative_to(os.path.realpath(top)):
        return False
    return place.is_file() or not place.exists()
