"""From settings to policy engines: which bundle, with whose data and rules on top, watched
or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agenttool_otel.context.settings import Settings
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import EngineName
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import merged, overlay
from agenttool_otel.policy.bundles.settings_check import check_settings, presets_of
from agenttool_otel.policy.bundles.source import BundleSource, ReloadResult
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.types import PolicyEngine

Policy = str | Path | Bundle | PolicyEngine | Sequence[PolicyEngine]
"""What a Governor takes as its policy."""

_ENGINES: Final = (EngineName.EMBEDDED.value, EngineName.OPA_SERVER.value)
_LAID_BY_SETTINGS: Final = ("policy_preset", "policy_data")
"""Settings that are data laid over a bundle, which only an engine that is opened here can have."""


def _refuse_unused(engine: str, names: Sequence[str]) -> None:
    """Refuse rules and data that nobody would read: a policy that silently lacks them is weaker
    than it looks.
    """
    if names:
        there = "put it into the engine itself, for OPA with agenttool policy push as agenttool/settings/data.json"
        raise ConfigurationError(
            f"{', '.join(dict.fromkeys(names))} can't be used with {engine}: {there}"
        )


def open_engines(
    settings: Settings,
    policy: Policy | None,
    *,
    data: Mapping[str, Any] | None,
    extension: str | Path | None,
    on_reload: Callable[[ReloadResult], None],
    stated: Collection[str] = (),
) -> tuple[tuple[PolicyEngine, ...], BundleSource | None]:
    """Open the engines of a Governor."""
    if settings.problems:
        raise ConfigurationError("; ".join(settings.problems))
    if settings.policy_engine not in _ENGINES:
        raise ConfigurationError(f"policy_engine has to be one of {', '.join(_ENGINES)}")
    given_here = _given_names(data, extension)
    engines = _engines_of(policy)
    if engines is not None:
        also = [name for name in _LAID_BY_SETTINGS if name in stated]
        _refuse_unused("an engine that was given in code", given_here + also)
        return engines, None
    if policy is None and settings.policy_engine == EngineName.OPA_SERVER:
        also = [name for name in _LAID_BY_SETTINGS if getattr(settings, name)]
        _refuse_unused("an OPA server", given_here + also)
        return (_opa_server(settings),), None
    own_data = _policy_data(settings, data)
    own_rules = None if extension is None else load_bundle(extension)

    def laid_over(bundle: Bundle) -> Bundle:
        whole = overlay(bundle, data=own_data, extension=own_rules)
        _check_preset(settings.policy_preset, whole)
        return check_settings(whole)

    bundle, source = _bundle_of(settings, policy, on_reload)
    engine = EmbeddedEngine(laid_over(bundle))
    if source is not None:
        source.attach(_Laid(engine, laid_over))
        source.watch(settings.policy_reload)
    return (engine,), source


def _bundle_of(
    settings: Settings,
    policy: Policy | None,
    on_reload: Callable[[ReloadResult], None],
) -> tuple[Bundle, BundleSource | None]:
    """Return the bundle to begin with, and what watches its place where it is to be reloaded."""
    if isinstance(policy, Bundle):
        return policy, None
    stated = policy if isinstance(policy, (str, Path)) else None
    path = stated or settings.policy_bundle or default_bundle_path()
    if settings.policy_reload > 0:
        source = BundleSource(path, on_reload=on_reload)
        return source.bundle, source
    return load_bundle(path), None


def _given_names(data: Mapping[str, Any] | None, extension: str | Path | None) -> list[str]:
    """Return which options of a Governor lay something over a bundle."""
    names: list[str] = []
    if data is not None:
        names.append("policy_data")
    if extension is not None:
        names.append("extension")
    return names


def _engines_of(policy: Policy | None) -> tuple[PolicyEngine, ...] | None:
    """Return the engines that were given in code; ``None`` where a bundle or its place was given."""
    if policy is None or isinstance(policy, (str, Path, Bundle)):
        return None
    if isinstance(policy, PolicyEngine):
        return (policy,)
    return tuple(policy)


def _check_preset(name: str, bundle: Bundle) -> None:
    """Refuse a preset that the bundle does not have, wherever it was named: in code, a variable or
    a file.
    """
    if not name:
        return
    known = [preset for preset, settings in presets_of(bundle).items() if settings is not None]
    if name not in known:
        variable = Settings.variables()["policy_preset"]
        if not known:
            raise ConfigurationError(f"{variable} has to be left out: the policy has no presets")
        choices = ", ".join(sorted(known))
        hint = did_you_mean(name, known)
        raise ConfigurationError(f"{variable} has to be one of {choices}{hint}")


class _Laid:
    """Lets an engine follow a source with the same data and rules on top of each new bundle."""

    def __init__(self, engine: Any, laid_over: Callable[[Bundle], Bundle]) -> None:
        self._engine = engine
        self._laid_over = laid_over

    def swap(self, bundle: Bundle) -> None:
        """Use a new bundle."""
        self._engine.swap(self._laid_over(bundle))


def _opa_server(settings: Settings) -> PolicyEngine:
    from agenttool_otel.policy.engines.opa_server import OpaServerEngine

    if not settings.opa_url:
        raise ConfigurationError("the opa_server engine needs AGENTTOOL_OPA_URL")
    return OpaServerEngine(
        settings.opa_url,
        token_file=settings.opa_token_file or None,
        ca_file=settings.opa_ca_file or None,
    )


def _policy_data(settings: Settings, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    document: dict[str, Any] = {}
    if settings.policy_data:
        try:
            document = json.loads(Path(settings.policy_data).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"policy_data can't be read: {type(error).__name__}") from None
        if not isinstance(document, dict):
            raise ConfigurationError("policy_data is not an object")
    if settings.policy_preset:  # whether there is such a preset, is seen once the bundle is loaded
        document = merged(document, {"agenttool": {"settings": {"preset": settings.policy_preset}}})
    if given is not None:
        document = merged(document, given)
    return document or None
