"""A bundle with data and rules on top; the result is a bundle of its own, with its
own revision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle, in_roots
from agenttool_otel.policy.rego.syntax import parse_program


def overlay(
    bundle: Bundle, *, data: Mapping[str, Any] | None = None, extension: Bundle | None = None
) -> Bundle:
    """Return a bundle with an extension's modules and data added, and then data merged over all of it.

    An extension adds packages; it can't replace a file of the base. Data of the extension and of
    ``data`` win over the base, member by member; that is how ``data.agenttool.settings`` overrides
    the stock defaults. The revision begins with the one that the extension's manifest states.
    """
    if data is None and extension is None:
        return bundle
    modules = dict(bundle.modules)
    tests = dict(bundle.tests)
    document = bundle.data
    if extension is not None:
        clash = modules.keys() & extension.modules.keys()
        if clash:
            raise PolicyLoadError(f"{extension.origin}: replaces {min(clash)} of the base bundle")
        _check_roots(extension)
        modules.update(extension.modules)
        tests.update(extension.tests)
        document = merged(document, extension.data)
    if data is not None:
        document = merged(document, data)
    try:
        text = json.dumps(
            document, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError, RecursionError):
        raise PolicyLoadError("the policy data can't be written as JSON") from None
    state = hashlib.sha256(bundle.digest.encode())
    for part in ("" if extension is None else extension.digest, text):
        # each part with its length, so that no two different pairs join to the same bytes
        state.update(len(part).to_bytes(8, "big"))
        state.update(part.encode())
    digest = state.hexdigest()
    revision = f"{bundle.revision}+{digest[:12]}"
    stated = None if extension is None else extension.manifest.get("revision")
    if stated:
        # acme-0.1.0+agenttool-stock-0.1.0+8e017311db9d: the author looks for the own one
        revision = f"{stated}+{revision}"
    return replace(
        bundle,
        modules=MappingProxyType(modules),
        tests=MappingProxyType(tests),
        data_json=text,
        roots=("",),
        revision=revision,
        digest=digest,
    )


def _check_roots(extension: Bundle) -> None:
    """Refuse rules that lie outside the roots which the extension's own manifest states, as
    OPA does.
    """
    if extension.roots == ("",):
        return
    for module in parse_program(extension.modules).modules:
        if not in_roots("/".join(module.package), extension.roots):
            package = ".".join(("data", *module.package))
            raise PolicyLoadError(
                f"{module.file}:{module.line}: {package} lies outside the manifest's roots"
            )


def merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with another laid over it, member by member; neither is changed."""
    whole = dict(base)
    for name, value in over.items():
        present = whole.get(name)
        if isinstance(present, dict) and isinstance(value, Mapping):
            whole[name] = merged(present, value)
        else:
            whole[name] = value
    return whole
