"""The rules and settings of a policy that the stock bundle does not have, and what they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agenttool_otel.evidence.words import texts_in
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.rego.syntax import Path, Rule, parse_program


def new_modules(bundle: Bundle) -> dict[str, str]:
    """Return the files of a policy that the stock bundle does not have, or has with another text.

    Args:
        bundle: the policy.
    """
    stock = load_bundle(default_bundle_path()).modules
    return {file: text for file, text in bundle.modules.items() if stock.get(file) != text}


def new_rules(bundle: Bundle) -> list[Rule]:
    """Return the rules of a policy that the stock bundle does not have.

    Args:
        bundle: the policy.
    """
    own = new_modules(bundle)
    if not own:
        return []
    return list(parse_program(own).rules)


def new_texts(bundle: Bundle) -> Iterator[str]:
    """Yield the texts of a policy in which its own words stand: new files, and data that differ.

    Args:
        bundle: the policy.
    """
    yield from new_modules(bundle).values()
    stock = load_bundle(default_bundle_path()).data["agenttool"]
    data = bundle.data.get("agenttool", {})
    for name, value in data.items():
        if stock.get(name) != value:
            yield from texts_in(value)


def names_read(rules: Iterable[Rule]) -> set[str]:
    """Return the names by which rules read their input: ``recipient`` of ``input.input.recipient``.

    Args:
        rules: the rules.
    """
    found: set[str] = set()
    for path in _input_paths(rules):
        found.update(path)
    return found


def arguments_read(rules: Iterable[Rule]) -> set[str]:
    """Return the names of the arguments whose values rules read themselves, beside their facts; an
    empty name stands for all.

    Args:
        rules: the rules.
    """
    found: set[str] = set()
    for path in _input_paths(rules):
        if not path or path == ("input",):
            found.add("")  # handed to a function, or asked by a computed name
        elif path[0] == "input":
            found.add(path[1])
    return found


def _input_paths(rules: Iterable[Rule]) -> Iterator[Path]:
    for rule in rules:
        for reference in rule.references:
            if reference.base == "input":
                yield reference.path
