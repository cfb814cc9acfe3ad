"""Facts that were stated by record (``permission={"risk_level": "low"}``), as flat ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agenttool_otel.catalog.options import GROUPS, GovernOptions
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.errors import ConfigurationError


def flat_options(options: Mapping[str, Any]) -> GovernOptions:
    """Return what was stated of a tool, with the facts of each group beside those that stand alone.

    Args:
        options: the keyword arguments of ``govern``.

    Raises:
        ConfigurationError: a group is no dict, has a fact that is not of it, or gives a fact
          another value than it has elsewhere.
    """
    if GROUPS.keys().isdisjoint(options):
        return cast(GovernOptions, options)
    flat = {name: value for name, value in options.items() if name not in GROUPS}
    for group in GROUPS:
        stated = options.get(group)
        if stated is not None:
            _add_group(flat, group, stated)
    return cast(GovernOptions, flat)


def _add_group(flat: dict[str, Any], group: str, stated: Any) -> None:
    if not isinstance(stated, Mapping):
        raise ConfigurationError(f"{group} has to be a dict, not {type(stated).__name__}")
    for name, value in stated.items():
        if name not in GROUPS[group]:
            raise ConfigurationError(f"{group} has no option {name!r}{_hint(name, group)}")
        if value is None:
            continue
        alone = flat.get(name)
        # risk_level="low" beside permission={"risk_level": "high"}: neither is the safe guess
        if alone is not None and alone != value:
            raise ConfigurationError(
                f"{name} is stated twice, alone and in {group}, with different values"
            )
        flat[name] = value


def _hint(name: Any, group: str) -> str:
    """Return where an unknown name belongs, or which name of the group was meant."""
    for other, known in GROUPS.items():
        if name in known:
            return f" (it belongs to {other!r})"
    return did_you_mean(name, GROUPS[group])
