"""From settings to policy engines: which bundle, with whose data and rules on top, watched
or not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from agenttool_otel.context.settings import Settings
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import EngineName
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.check import defines_decision
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import merged, overlay
from agenttool_otel.policy.bundles.settings_check import check_settings, presets_of
from agenttool_otel.policy.bundles.source import BundleSource, ReloadResult
from agenttool_otel.policy.layers import Layers, Parts
from agenttool_otel.policy.places import Opened, Places
from agenttool_otel.policy.types import PolicyEngine

Policy = str | Path | Bundle | PolicyEngine | Sequence[PolicyEngine]
"""What a Governor takes as its policy."""

_ENGINES: Final = (EngineName.EMBEDDED.value, EngineName.OPA_SERVER.value)
_LAID_BY_SETTINGS: Final = ("policy_preset", "policy_data", "policy_extension")
"""Settings that are laid over a bundle, which only an engine that is opened here can have."""

_OF_PLACES: Final = ("policy_reload", "policy_key_file", "policy_token_file", "policy_ca_file")
"""Settings of how a place is looked at."""


def _refuse_unused(engine: str, names: Sequence[str]) -> None:
    """Refuse rules and data that nobody would read: a policy that silently lacks them is weaker
    than it looks.
    """
    if names:
        there = "put it into the engine itself, for OPA with agenttool policy push as agenttool/settings/data.json"
        raise ConfigurationError(
            f"{', '.join(dict.fromkeys(names))} can't be used with {engine}: {there}"
        )


class OpenedPolicy(NamedTuple):
    """The engines of a Governor, and what watches their places."""

    engines: tuple[PolicyEngine, ...]  # those that decide
    shadow: tuple[PolicyEngine, ...] = ()  # those that are asked for the record
    sources: tuple[BundleSource, ...] = ()  # what is watched

    def close(self) -> None:
        """Stop watching."""
        for source in self.sources:
            source.close()


def open_engines(
    settings: Settings,
    policy: Policy | None,
    *,
    data: Mapping[str, Any] | None,
    extension: str | Path | None,
    on_reload: Callable[[ReloadResult], None],
    stated: Collection[str] = (),
) -> OpenedPolicy:
    """Open the engines of a Governor.

    Args:
        settings: the settings.
        policy: the policy that code names, if any.
        data: data that code lays over it.
        extension: rules that code puts on top of it.
        on_reload: called with what became of each change.
        stated: names of the settings that code states.

    Raises:
        ConfigurationError: what is stated can't be used together, or can't be watched.
        PolicyLoadError: a policy can't be used.
    """
    if settings.problems:
        raise ConfigurationError("; ".join(settings.problems))
    if settings.policy_engine not in _ENGINES:
        raise ConfigurationError(f"policy_engine has to be one of {', '.join(_ENGINES)}")
    given_here = _given_names(data, extension)
    engines = _engines_of(policy)
    if engines is not None:
        also = [name for name in _LAID_BY_SETTINGS if name in stated]
        _refuse_unused("an engine that was given in code", given_here + also)
        watched = [name for name in (*_OF_PLACES, "shadow_policy") if name in stated]
        _refuse_unwatched("an engine that was given in code", watched)
        return OpenedPolicy(engines)
    on_server = policy is None and settings.policy_engine == EngineName.OPA_SERVER
    if on_server:
        also = [name for name in _LAID_BY_SETTINGS if getattr(settings, name)]
        _refuse_unused("an OPA server", given_here + also)
        if not settings.shadow_policy:
            watched = [name for name in _OF_PLACES if getattr(settings, name)]
            _refuse_unwatched("an OPA server", watched)
            return OpenedPolicy((_opa_server(settings),))
    places = Places(settings, on_reload, (policy, extension))
    opened = _Opening(settings, places, data)
    base = opened.base(policy)
    deciding = _opa_server(settings) if on_server else opened.deciding(base, extension)
    shadow = (opened.shadow(base),) if settings.shadow_policy else ()
    places.watch()
    return OpenedPolicy((deciding,), shadow, tuple(places.sources))


class _Opening:
    """Opens what decides and what is asked beside it, with the same data over both."""

    def __init__(self, settings: Settings, places: Places, data: Mapping[str, Any] | None) -> None:
        self._settings = settings
        self._places = places
        self._given = data
        self._data = places.open_data(settings.policy_data) if settings.policy_data else None

    def base(self, policy: Policy | None) -> Opened:
        """Open the bundle to begin with."""
        if isinstance(policy, Bundle):
            return Opened(self._checked(policy), None)
        place = _place_of(policy) or self._settings.policy_bundle
        if place:
            return self._places.open(place)
        return Opened(load_bundle(default_bundle_path()), None)

    def deciding(self, base: Opened, extension: str | Path | None) -> PolicyEngine:
        """Open the engine that decides."""
        parts = {"bundle": base}
        place = extension or self._settings.policy_extension
        if place:
            parts["extension"] = self._places.open(place)
        return self._layers(parts).engine

    def shadow(self, base: Opened) -> PolicyEngine:
        """Open the policy that is asked for the record: a whole bundle, or rules on top of the base."""
        opened = self._places.open(self._settings.shadow_policy)
        if defines_decision(opened.bundle):
            return self._layers({"bundle": opened}).engine
        return self._layers({"extension": opened}, {"bundle": base}).engine

    def _layers(
        self, parts: Mapping[str, Opened], beside: Mapping[str, Opened] | None = None
    ) -> Layers:
        """Make an engine of parts; it may refuse changes of ``parts`` and of the data, not of those
        ``beside``.
        """
        own = dict(parts)
        if self._data is not None:
            own["data"] = self._data
        lent = dict(beside or {})
        layers = Layers({**own, **lent}, self._joined)
        for name, opened in own.items():
            layers.follow(name, opened)
        for name, opened in lent.items():
            layers.follow(name, opened, binds=False)
        return layers

    def _joined(self, parts: Parts) -> Bundle:
        document: dict[str, Any] = parts["data"].data if "data" in parts else {}
        preset = self._settings.policy_preset
        if preset:  # whether there is such a preset, is seen below
            document = merged(document, {"agenttool": {"settings": {"preset": preset}}})
        if self._given is not None:
            document = merged(document, self._given)
        whole = overlay(parts["bundle"], data=document or None, extension=parts.get("extension"))
        _check_preset(preset, whole)
        return check_settings(whole)

    def _checked(self, bundle: Bundle) -> Bundle:
        if self._settings.policy_reload > 0:
            _refuse_unwatched("a bundle in memory", ["policy_reload"])
        if self._places.verification is not None and not bundle.verified:
            raise ConfigurationError(
                "a key is stated, and the bundle that code gives is not verified"
            )
        return bundle


def _place_of(policy: Policy | None) -> str | Path | None:
    return policy if isinstance(policy, (str, Path)) else None


def _refuse_unwatched(engine: str, names: Sequence[str]) -> None:
    """Refuse to look again at what has no place to look at."""
    if names:
        variables = ", ".join(Settings.variables()[name] for name in names)
        raise ConfigurationError(
            f"{variables} can't be used with {engine}: what loads its policy verifies and renews it, "
            "an OPA by its own configuration of bundles"
        )


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


def _opa_server(settings: Settings) -> PolicyEngine:
    from agenttool_otel.policy.engines.opa_server import OpaServerEngine

    if not settings.opa_url:
        raise ConfigurationError("the opa_server engine needs AGENTTOOL_OPA_URL")
    return OpaServerEngine(
        settings.opa_url,
        token_file=settings.opa_token_file or None,
        ca_file=settings.opa_ca_file or None,
    )
