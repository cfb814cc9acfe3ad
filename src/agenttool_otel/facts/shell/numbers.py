"""Whether commands print nothing but numbers or hashes, so that what stands for it needs no more knowledge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agenttool_otel.facts.shell.tables import programs

if TYPE_CHECKING:
    from agenttool_otel.facts.shell.compounds import Simple
    from agenttool_otel.facts.shell.words import Word

_PLAIN = re.compile(r"[\w./:^~%+=@*-]+", re.ASCII)


def prints(pipeline: Sequence[Simple] | None, *kinds: str) -> bool:
    """Whether all that a pipeline prints is of these kinds (``data/programs.toml``); it may print nothing."""
    text = "|".join(map(_shown, pipeline or ()))
    return any(re.fullmatch(rf"(?s:.*\|)?(?:{form})", text) for kind in kinds for form in programs()["prints"][kind])


def _shown(command: Simple) -> str:
    """A command as the table writes it: ``'`` for other words that are known, a line break for what is not."""
    goes = [r for r in command.redirects if r.operator != "<" and (r.fd, r.target.text) != ("2", "/dev/null")]
    fed = any("<" in redirect.operator for redirect in command.redirects)
    return " ".join(map(_word, command.words)) + " <" * fed + "\n" * bool(goes or command.assignments)


def _word(word: Word) -> str:
    plain = not word.glob and _PLAIN.fullmatch(word.text)
    odd = word.unknown or word.substitution or (word.glob and (word.glob_first or not word.one))
    return word.text if plain else "\n" if odd or word.text[:1] == "-" else "'"
