"""Compare the names in ``tests/preflight/openboa_names.json`` with openboa's page "Agent Tools", from
which they are: ``python tools/openboa_names.py PAGE``.

The page is not part of this repository. Its text has lost the marks around names
(``nextOutcomeStepwhen``), so the names are listed by hand, and this finds what the list lacks.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = Path(__file__).resolve().parent.parent / "tests" / "preflight" / "openboa_names.json"
_SECTIONS = {
    "definition": ("Current shape", "Ownership"),
    "permissions_check": ("Permission policies", "Custom tools"),
    "permissions_describe": ("Permission policies", "Custom tools"),
    "confirmation": ("Managed tool confirmation", "Why proactive is not a tool family"),
}
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+")  # nextOutcomeStep


def differences(page: str, names: dict[str, list[str]]) -> Iterator[str]:
    """Give what the page has and the list lacks, and the other way round.

    Args:
        page: its text.
        names: by what they are of, the names.
    """
    for about, listed in names.items():
        text = _text_about(page.splitlines(), about)
        for name in sorted(listed, key=len, reverse=True):
            if name not in text:
                yield f"{about}: the page does not name {name}"
            text = text.replace(name, " ")
        for name in _CAMEL.findall(text):
            yield f"{about}: the list lacks {name}"


def _text_about(lines: list[str], about: str) -> str:
    first, last = _SECTIONS[about]
    section = lines[lines.index(first) + 1 : lines.index(last)]
    others = [tool for tool in _SECTIONS if tool.startswith("permissions_") and tool != about]
    if not about.startswith("permissions_"):
        return "\n".join(section)
    found = []
    is_about = False
    for line in section:
        if about in line:
            is_about = True
        elif any(other in line for other in others):
            is_about = False
        if is_about:
            found.append(line)
    return "\n".join(found)


def main(page: str) -> int:
    """Print the differences; return 1 where there are any."""
    names = json.loads(NAMES.read_text(encoding="utf-8"))
    found = list(differences(Path(page).read_text(encoding="utf-8"), names))
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
