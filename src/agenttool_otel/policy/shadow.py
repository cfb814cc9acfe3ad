"""Shadow mode of single rule packages: what they would block is recorded, what the others decide is
done.

Only the policy itself defines how its rules combine, so nothing is subtracted from a finished decision.
Instead the bundle is rewritten: in the named packages the rules ``deny`` and ``ask`` get other
names and empty sets take their place. The rewritten bundle decides; the original one, asked as
well, answers what would have been decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.rego.syntax import Module, Path, Rule, parse_program
from agenttool_otel.policy.rego.tree import only

_BLOCKING: Final = ("deny", "ask")
_PREFIX: Final = "shadowed_"


def without_packages(bundle: Bundle, packages: Sequence[str]) -> Bundle:
    """Return a bundle in which the named packages block nothing."""
    program = parse_program(bundle.modules)
    modules = dict(bundle.modules)
    for name in packages:
        path = tuple(name.removeprefix("data.").split("."))
        found = [module for module in program.modules if module.package[: len(path)] == path]
        if not found:
            raise PolicyLoadError(f"no package {name} is in the bundle, so it can't be shadowed")
        for module in found:
            modules[module.file] = _rewritten(module)
    return replace(
        bundle,
        modules=MappingProxyType(modules),
        revision=f"{bundle.revision}+shadow",
        digest=f"{bundle.digest}+{','.join(sorted(packages))}",
    )


def _rewritten(module: Module) -> str:
    own: dict[Path, str] = {(*module.package, word): word for word in _BLOCKING}
    size = len(module.package) + 1
    starts: list[int] = []
    used: set[str] = set()
    for rule in module.rules:
        word = own.get(rule.path[:size])
        if word is not None:
            starts.append(_head_start(rule, word))
            used.add(word)
        for reference in rule.references:
            if reference.base == "data" and reference.path[:size] in own:
                raise PolicyLoadError(
                    f"{rule.file}:{reference.line}: {rule.name} uses its package's own blocking rule, "
                    "so the package can't be shadowed"
                )
    text = module.text.encode("utf-8")
    # from the last place to the first, so that those before it stay right
    for start in sorted(starts, reverse=True):
        text = text[:start] + _PREFIX.encode() + text[start:]
    parts = [text.decode("utf-8")]
    for word in sorted(used):
        parts.append(f'{word} contains "" if false')
    parts.append(f"{_PREFIX.rstrip('_')} := true\n")
    return "\n\n".join(parts)


def _head_start(rule: Rule, word: str) -> int:
    """Return where the name of a set begins."""
    kind, definition = only(rule.node)
    if kind != "Default" and "Set" in definition["head"]:
        name = definition["head"]["Set"]["refr"].get("Var")
        if name is not None and name["value"] == word:
            start: int = name["span"]["start"]
            return start
    raise PolicyLoadError(
        f"{rule.file}:{rule.line}: {rule.name} is not a set, so its package can't be shadowed"
    )
