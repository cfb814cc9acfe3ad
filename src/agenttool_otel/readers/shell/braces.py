"""What braces stand for, in patterns of names and in text that warns."""

from __future__ import annotations

import re

BRACE = re.compile(r"\{([^{}]*,[^{}]*)\}")

_MAX_TEXTS = 64


def alternatives(text: str) -> list[str]:
    """Return the texts that braces stand for: ``a.c`` and ``a.h`` for ``a.{c,h}``.

    Where they are more than a limit, some still hold braces.
    """
    done: list[str] = []
    waiting = [text]
    while waiting and len(done) + len(waiting) < _MAX_TEXTS:
        current = waiting.pop(0)
        match = BRACE.search(current)
        if match is None:
            done.append(current)
            continue
        choices = []
        for choice in match[1].split(","):
            choices.append(current[: match.start()] + choice + current[match.end() :])
        waiting = choices + waiting
    return done + waiting
