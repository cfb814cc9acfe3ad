"""A skeleton of facts for tools that nobody declared: guesses from names, schema and description.

What would make a policy lenient is written as a comment, so that a skeleton pasted unread loosens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.catalog import ToolSpec
from agenttool_otel.values.tables import load_table

_LISTED: Final[dict[str, str]] = load_table(__package__, "guessed_words.toml")
_WORDS: Final = {effect: frozenset(text.split()) for effect, text in _LISTED.items()}
_MAX_TEXT: Final = 80


class Guess(NamedTuple):
    """One fact that a tool may have."""

    keyword: str
    value: Any
    why: str
    loosens: bool  # whether a policy asks less where it is stated


def undeclared(spec: ToolSpec) -> bool:
    """Tell whether nobody said if a tool only reads."""
    return "read_only" in spec.interface.inferred


def guesses(spec: ToolSpec) -> Iterator[Guess]:
    """Guess the facts of one tool, the ones that restrict first.

    Args:
        spec: the tool.
    """
    arguments = [(pointer.removeprefix("/").removesuffix("/*"), kind) for pointer, kind, _ in _arguments(spec)]
    kinds = {kind for _, kind in arguments}
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", spec.name).lower())
    told = re.findall(r"[a-z]+", (spec.declaration.description or "").lower())[:1]

    def said(effect: str) -> str:
        word = next((word for word in (*words, *told) if {word, word.rstrip("s")} & _WORDS[effect]), "")
        return f"the {'name' if word in words else 'description'} says {word}" if word else ""

    runs, pays, sends = (
        said("runs") or ("it takes a command" if "command" in kinds else ""),
        said("pays"),
        said("sends"),
    )
    destroys, writes, reads = said("destroys"), said("writes") or sends or pays, said("reads")
    access = [
        *(["code_execution"] if runs else []),
        *(["payment"] if pays else []),
        *(["external_send"] if sends else []),
        *(["network"] if "url" in kinds else []),
        *(["file_read"] if kinds & {"path", "command"} else []),
        *(["file_write"] if "command" in kinds or ("path" in kinds and (writes or destroys or not reads)) else []),
    ]
    if "command" in kinds or "sql" in kinds:
        yield Guess("read_only", "classifier:command_read_only", "its text is a command or SQL", loosens=True)
        yield Guess("destructive", "classifier:command_destructive", "its text is a command or SQL", loosens=False)
    elif destroys or writes or runs or not reads:
        yield Guess("read_only", False, destroys or writes or runs or "nothing says that it only reads", loosens=False)
    else:
        yield Guess("read_only", True, f"{reads}, and nothing that it changes something", loosens=True)
    if destroys and not kinds & {"command", "sql"}:
        yield Guess("destructive", True, destroys, loosens=False)
    if access:
        yield Guess("access_kinds", access, runs or pays or sends or "its arguments", loosens=False)
    elif reads and not writes:
        yield Guess("access_kinds", [], "no argument is a path, a URL or a command", loosens=True)
    if writes or destroys:
        where = "local_persistent" if "path" in kinds else "irreversible" if pays else "remote_mutation"
        yield Guess("write_effects", [where], writes or destroys, loosens=False)
    for kind in ("path", "url", "command", "sql"):
        named = list(dict.fromkeys(name.replace("/", ".") for name, of in arguments if of == kind))
        if named:
            yield Guess(f"{kind}_args", named, "by the argument's name or format", loosens=False)


def _arguments(spec: ToolSpec) -> list[tuple[str, str, bool]]:
    return spec.facts.describe() if spec.facts is not None else []


def skeleton(found: Mapping[str, ToolSpec]) -> str:
    """Return a Python literal of guessed facts by tool name, for ``facts=`` or the keywords of ``govern``.

    Args:
        found: the tools, by the name that models call.
    """
    lines = [
        "# Guesses, each to be checked against what the tool does. What would ask less is a comment:",
        "# take the first # of its line away once you know that it is so.",
        "facts = {",
    ]
    for name, spec in found.items():
        text = " ".join(f"{spec.tool_id}: {spec.declaration.description}".split())  # a line break would end the comment
        lines.append(f"    {name!r}: {{  # {''.join(filter(str.isprintable, text))[:_MAX_TEXT]}")
        for guess in guesses(spec):
            mark = "# " if guess.loosens else ""
            lines.append(f"        {mark}{guess.keyword!r}: {guess.value!r},  # guess: {guess.why}")
        lines.append("    },")
    return "\n".join((*lines, "}"))
