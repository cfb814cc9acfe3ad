"""A policy project: a folder with somebody's own rules, and the stock bundle below them.

A folder that defines ``data.agenttool.permission.decision`` itself is a whole bundle and stands alone; any other one
extends the stock bundle, exactly as ``configure(extension=...)`` joins them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundle_signature import BundleVerification
from agenttool_otel.policy.check import entry_path
from agenttool_otel.policy.load import load_bundle
from agenttool_otel.policy.overlay import overlay
from agenttool_otel.policy.rego import Program, parse_program

__all__ = ["FIXTURES", "Project", "load_project", "parse_tests"]

FIXTURES: Final = "agenttool/lib/fixtures_test.rego"
"""The stock bundle's inputs for tests, which the tests of a project may use."""


@dataclass(frozen=True)
class Project:
    """Somebody's policy, loaded, not yet checked against an engine.

    Attributes:
        root: its folder or archive; ``None`` for the stock bundle alone.
        own: what lies in it.
        base: the stock bundle below it; ``None`` where it stands alone.
        whole: what decides: both together.
    """

    root: Path | None
    own: Bundle
    base: Bundle | None
    whole: Bundle

    @cached_property
    def program(self) -> Program:
        """The modules of ``whole``, parsed at the first use; raises PolicyLoadError with file and line."""
        return parse_program(self.whole.modules)

    @property
    def support(self) -> dict[str, str]:
        """Modules that tests may use beside the rules: the stock bundle's fixtures, where it is below."""
        if self.base is None or FIXTURES not in self.base.tests or FIXTURES in self.own.tests:
            return {}
        return {FIXTURES: self.base.tests[FIXTURES]}

    def is_own(self, file: str) -> bool:
        """Tell whether a file belongs to the project rather than to the stock bundle.

        Args:
            file: path in the bundle.
        """
        return self.base is None or file in self.own.modules or file in self.own.tests


@cache
def _stock() -> Bundle:
    return load_bundle(default_bundle_path())


def load_project(
    root: str | Path | None,
    *,
    data: Mapping[str, Any] | None = None,
    standalone: bool | None = None,
    verification: BundleVerification | None = None,
) -> Project:
    """Load a project.

    Args:
        root: folder, ``.tar.gz`` or single ``.rego`` file; ``None``: the stock bundle alone.
        data: data merged over everything, from the root of ``data``.
        standalone: whether it is a whole bundle; ``None``: it is one when it defines the decision itself.
        verification: keys, when it must be signed.

    Raises:
        PolicyLoadError: missing, empty, broken, or not signed as it must be; the message names file and line.
        ConfigurationError: the stock bundle alone was to be verified.
    """
    stock = _stock()
    if root is None:
        if verification is not None:
            raise ConfigurationError("the stock bundle is part of the package and not signed: name a bundle to verify")
        return Project(None, stock, None, overlay(stock, data=data))
    own = load_bundle(root, verification=verification)
    decision = entry_path(EntryPoint.DECISION)
    if standalone is None:
        standalone = any(rule.path == decision for rule in parse_program(own.modules).rules)
    base = None if standalone else stock
    whole = overlay(own, data=data) if base is None else overlay(base, data=data, extension=own)
    return Project(Path(root), own, base, whole)


def parse_tests(project: Project) -> Program:
    """Parse a project's rules together with its tests.

    Args:
        project: the project.

    Raises:
        PolicyLoadError: a test file is broken; the message names file and line.
    """
    return parse_program({**project.whole.modules, **project.support, **project.own.tests})
