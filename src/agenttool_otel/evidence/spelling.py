"""Which rules look inside of words, so that a digest in a word's place may be decided otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from agenttool_otel.evidence.words import SEPARATORS
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.rego.syntax import Call, Rule, parse_program

_LOOKS: Final = re.compile(
    r"startswith|endswith|contains|glob\.match|regex\..*|split|substring|indexof.*|trim.*|replace|"
    r"strings\..*|upper|format_int|to_number|units\..*|net\..*|base64.*|hex\..*|json\..*|crypto\..*"
)
_ARGUMENTS: Final = re.compile(rb'\s*\(\s*([^,()"]+?)\s*,\s*"([^"\\]*)"\s*\)')
_DECLARED: Final = (b"input.tool.", b"input.permission_profile.")  # recorded as they are


class NewRule(NamedTuple):
    """A rule that is none of the stock bundle's."""

    rule: Rule
    text: bytes  # of its module


def new_rules(bundle: Bundle) -> list[NewRule]:
    """Return the rules of a policy that the stock bundle does not have.

    Args:
        bundle: the policy.
    """
    stock = load_bundle(default_bundle_path()).modules
    own = {file: text for file, text in bundle.modules.items() if stock.get(file) != text}
    if not own:
        return []
    found = []
    for module in parse_program(own).modules:
        text = own[module.file].encode()
        found += [NewRule(rule, text) for rule in module.rules]
    return found


def names_read(rules: Iterable[NewRule]) -> set[str]:
    """Return the names by which rules read their input: ``recipient`` of ``input.input.recipient``.

    Args:
        rules: the rules.
    """
    found: set[str] = set()
    for new in rules:
        for reference in new.rule.references:
            if reference.base == "input":
                found.update(reference.path)
    return found


def reads_arguments(rules: Iterable[NewRule]) -> bool:
    """Return whether rules read values of arguments themselves, beside their facts."""
    for new in rules:
        for reference in new.rule.references:
            if reference.base == "input" and reference.path[:1] in ((), ("input",)):
                return True
    return False


def spelling_calls(rules: Iterable[NewRule]) -> list[str]:
    """Return where rules look inside of words, as file and line with the builtin."""
    found = []
    for new in rules:
        for call in new.rule.calls:
            if _LOOKS.fullmatch(call.name) and not _ends_at_words(call, new.text):
                found.append(f"{new.rule.file}:{call.line} ({call.name})")
    return found


def _ends_at_words(call: Call, text: bytes) -> bool:
    """Return whether a call's answer is the same for digests: ``startswith(path, "/etc/")``."""
    match = _ARGUMENTS.match(text, call.end)
    if match is None:
        return False
    if match[1].startswith(_DECLARED):
        return True
    literal = match[2].decode()
    if not literal:
        return True
    begins, ends = literal[0] in SEPARATORS, literal[-1] in SEPARATORS
    if call.name == "startswith":
        return ends
    if call.name == "endswith":
        return begins
    return call.name in ("contains", "split") and begins and ends
