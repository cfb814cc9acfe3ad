"""A policy project: a folder with rules of one's own, and the stock bundle below them.

A folder that defines ``data.agenttool.permission.decision`` itself is a whole bundle and stands
alone; any other one extends the stock bundle, exactly as ``configure(extension=...)`` joins them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.bundle_signature import BundleVerification
from agenttool_otel.policy.bundles.check import defines_decision
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.engines.evaluation import CompiledBundle
from agenttool_otel.policy.rego.syntax import Program, parse_program
from agenttool_otel.values.forks import cached_property

FIXTURES: Final = "agenttool/lib/fixtures_test.rego"
"""The stock bundle's inputs for tests, which the tests of a project may use."""


@dataclass(frozen=True)
class Project:
    """A policy, loaded, not yet checked against an engine."""

    root: Path | None  # its folder or archive; ``None`` for the stock bundle alone
    own: Bundle  # what lies in it
    base: Bundle | None  # the stock bundle below it; ``None`` where it stands alone
    whole: Bundle  # what decides: both together

    @cached_property
    def program(self) -> Program:
        """The modules of ``whole``, parsed at the first use; raises PolicyLoadError with file and
        line.
        """
        return parse_program(self.whole.modules)

    @cached_property
    def test_program(self) -> Program:
        """The modules of ``whole`` with the project's tests, parsed at the first use."""
        return parse_program({**self.whole.modules, **self.support, **self.own.tests})

    @cached_property
    def compiled(self) -> CompiledBundle:
        """``whole`` as the embedded engine holds it, checked at the first use."""
        return CompiledBundle(self.whole, (EntryPoint.DECISION,))

    @property
    def support(self) -> dict[str, str]:
        """Modules that tests may use beside the rules: the stock bundle's fixtures, where
        it is below.
        """
        if self.base is None or FIXTURES not in self.base.tests:
            return {}
        # a project that was copied from the stock bundle has its own
        if FIXTURES in self.own.tests:
            return {}
        return {FIXTURES: self.base.tests[FIXTURES]}

    def is_own(self, file: str) -> bool:
        """Whether a file belongs to the project rather than to the stock bundle."""
        if self.base is None:
            return True
        return file in self.own.modules or file in self.own.tests


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
        root: Its folder or archive; ``None`` for the stock bundle alone.
        data: Merged over the policy's data.
        standalone: Whether it is a whole bundle; by default, whether it defines the decision.
        verification: How the bundle's signature is checked; ``None`` for no check.

    Raises:
        ConfigurationError: A signature is wanted of the stock bundle, which has none.
        PolicyLoadError: The files can't be read, or are not signed as they have to be.
    """
    stock = _stock()
    if root is None:
        if verification is not None:
            raise ConfigurationError(
                "the stock bundle is part of the package and not signed: name a bundle to verify"
            )
        return Project(None, stock, None, overlay(stock, data=data))
    own = load_bundle(root, verification=verification)
    if standalone is None:
        standalone = defines_decision(own)
    if standalone:
        whole = overlay(own, data=data)
        return Project(Path(root), own, base=None, whole=whole)
    whole = overlay(stock, data=data, extension=own)
    return Project(Path(root), own, base=stock, whole=whole)


def parse_tests(project: Project) -> Program:
    """Parse a project's rules together with its tests."""
    return project.test_program
