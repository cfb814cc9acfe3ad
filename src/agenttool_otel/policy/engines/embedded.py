"""EmbeddedEngine: Rego inside this process, the default engine.

An evaluation holds the interpreter lock and can't be interrupted from outside. An answer that took
more CPU time than its deadline allows is thrown away and counts as a timeout; time in which the
machine was busy with something else does not count. Who must bound a policy that they don't trust
uses ``IsolatedEngine`` or ``OpaServerEngine``.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agenttool_otel.errors import PolicyTimeout, PolicyUnavailable
from agenttool_otel.names import EngineName, EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.reads import Guard, ReadSet
from agenttool_otel.policy.bundles.source import BundleSource
from agenttool_otel.policy.engines.evaluation import CompiledBundle, compile_bundle, evaluate
from agenttool_otel.policy.jsonio import MAX_INPUT_BYTES, encode_document
from agenttool_otel.policy.rego.builtins import EMBEDDED_BUILTINS
from agenttool_otel.policy.shadow import without_packages
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput


class EmbeddedEngine:
    """Evaluates a bundle in this process.

    Args:
        source: a bundle, the path or URL of one, or a BundleSource, which the engine then follows.
        entry_points: rules that the bundle has to define; others of it can be queried too.
        max_input_bytes: largest encoded input that is evaluated.
        shadowed: rule packages of the bundle that block nothing; see ``shadow.py``.
        fast: use the compiled form where it is shown to give the same answers.

    Raises:
        PolicyLoadError: the bundle is missing, empty, broken or lacks an entry point.
        PolicyUnsupported: it uses a builtin that the engine lacks.
    """

    name = EngineName.EMBEDDED.value
    capabilities = EngineCapabilities(
        builtins=EMBEDDED_BUILTINS, coverage=True, counts_cpu_time=True
    )

    def __init__(
        self,
        source: Bundle | BundleSource | str | Path,
        *,
        entry_points: Iterable[str] = (EntryPoint.DECISION,),
        max_input_bytes: int = MAX_INPUT_BYTES,
        shadowed: Sequence[str] = (),
        fast: bool = True,
    ) -> None:
        self._fast = fast
        if isinstance(source, BundleSource):
            bundle = source.bundle
        else:
            bundle = source if isinstance(source, Bundle) else load_bundle(source)
        self._max_input_bytes = max_input_bytes
        self._entry_points = tuple(entry_points)
        self._closed = False
        self._shadowed = tuple(shadowed)
        self._derived: list[weakref.ref[EmbeddedEngine]] = []
        self._use(bundle, self._compile(bundle))
        if isinstance(source, BundleSource):
            source.attach(self)
            if source.bundle is not self.bundle:
                self.swap(source.bundle)

    @property
    def revision(self) -> str:
        """Revision of the bundle in use."""
        return self._compiled.bundle.revision

    @property
    def bundle(self) -> Bundle:
        """The bundle in use."""
        return self._in_use[0]

    @property
    def _compiled(self) -> CompiledBundle:
        return self._in_use[1]

    @property
    def interpreted_because(self) -> str:
        """Why the compiled form is not used; empty when it is."""
        return self._compiled.compiled.reason

    @property
    def evaluating(self) -> int:
        """Generation of the bundle that an evaluation would use now."""
        return self._compiled.generation

    def guards(self, entry_point: str) -> list[Guard]:
        """Return what decides which parts of a document an entry point can read."""
        return self._compiled.guards[entry_point]

    def sorting(self, generation: int, entry_point: str, document: Any) -> bytes:
        """Return which of the guards hold for a document that are looked at for each.

        Args:
            generation: that of the bundle which has the guards.
            entry_point: the rule that they belong to.
            document: the input.

        Raises:
            LookupError: another bundle is in use by now.
        """
        compiled = self._compiled
        if compiled.generation != generation:
            raise LookupError(generation)
        return compiled.sorting(entry_point, document)

    @property
    def has_permitted(self) -> bool:
        """Whether the decision is that of ``EntryPoint.PERMITTED`` wherever that allows."""
        return EntryPoint.PERMITTED in self._compiled.entry_points

    def reads(self, entry_point: str, document: Any) -> tuple[int, ReadSet] | None:
        """Return the bundle's generation and what an entry point can read; ``None`` where that is
        not proven.

        What a part of a document leaves open, the read set covers.
        """
        compiled = self._compiled
        reads = compiled.reads(entry_point, document)
        return None if reads is None else (compiled.generation, reads)

    def swap(self, bundle: Bundle) -> None:
        """Use another bundle from the next evaluation on; those that run finish with the
        old one.
        """
        derived = [
            (engine, engine._compile(bundle))
            for reference in self._derived
            if (engine := reference())
        ]
        compiled = self._compile(bundle)
        for engine, its_compiled in derived:
            engine._use(bundle, its_compiled)
        self._use(bundle, compiled)

    def _use(self, bundle: Bundle, compiled: CompiledBundle) -> None:
        self._in_use = bundle, compiled  # set at once: another thread may read between two settings
        # set last: who reads it evaluates with this bundle, or a later one
        self.generation = compiled.generation

    def shadowing(self, packages: Sequence[str]) -> EmbeddedEngine:
        """Return an engine for the same bundle, now and after every swap, in which some packages
        block nothing.
        """
        engine = EmbeddedEngine(
            self.bundle,
            entry_points=self._entry_points,
            max_input_bytes=self._max_input_bytes,
            shadowed=packages,
            fast=self._fast,
        )
        self._derived.append(weakref.ref(engine))
        return engine

    def _compile(self, bundle: Bundle) -> CompiledBundle:
        reduced = without_packages(bundle, self._shadowed) if self._shadowed else bundle
        return compile_bundle(reduced, self._entry_points, fast=self._fast)

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Evaluate; see ``PolicyEngine``."""
        if self._closed:
            raise PolicyUnavailable("the policy engine is closed")
        bundle, compiled = self._in_use
        text = encode_document(document, limit=self._max_input_bytes).decode("utf-8")
        value, seconds = evaluate(compiled, entry_point, text)
        if seconds > timeout:
            raise PolicyTimeout(f"the evaluation took longer than {timeout:g} s")
        return EngineAnswer(value, compiled.bundle.revision, bundle_digest=bundle.digest)

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        """Evaluate in the event loop's own thread: a decision takes less time than handing it to
        another.
        """
        return self.evaluate(entry_point, document, timeout=timeout)

    def close(self) -> None:
        """Refuse further evaluations; native engines go with their threads."""
        self._closed = True
