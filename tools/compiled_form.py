"""Write the compiled form of the stock bundle and of its presets, which a wheel brings.

``python tools/compiled_form.py FILE``; the build of a wheel does it (``build_hook.py``). Each preset
is compiled and checked on its own, and has to come out like the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.check import load_program
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.bundles.settings_check import check_settings, presets_of
from agenttool_otel.policy.engines.evaluation import Checked, CompiledBundle
from agenttool_otel.policy.engines.shipped import shipped_form

ENTRY_POINTS = (EntryPoint.DECISION.value,)


def stock_bundles() -> list[Bundle]:
    """Return the bundle as it ships, and with each of its presets chosen."""
    stock = load_bundle(default_bundle_path())
    chosen = [
        overlay(stock, data={"agenttool": {"settings": {"preset": name}}})
        for name in presets_of(stock)
    ]
    return [check_settings(bundle) for bundle in (stock, *chosen)]


def compiled_form() -> bytes:
    """Return the file's content.

    Raises:
        SystemExit: a bundle has no compiled form, or another one than the others.
    """
    bundles = stock_bundles()
    parsed = load_program(bundles[0])  # while it lives, the others' modules are not parsed again
    first = _checked(bundles[0])
    for bundle in bundles[1:]:
        if _checked(bundle) != first:
            raise SystemExit(
                f"{bundle.revision} is compiled to something else than the stock bundle"
            )
    del parsed
    return shipped_form(bundles, ENTRY_POINTS, first)


def _checked(bundle: Bundle) -> Checked:
    compiled = CompiledBundle(bundle, ENTRY_POINTS)
    if compiled.compiled.reason:
        raise SystemExit(f"{bundle.revision} is not compiled: {compiled.compiled.reason}")
    return compiled.checked


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(compiled_form())
