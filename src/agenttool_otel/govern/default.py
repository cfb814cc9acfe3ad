"""The Governor of programs that make none: built at first use from the environment, replaced by
``configure``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from agenttool_otel.call.runtime import build_default_with, default_runtime, replace_default
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError, PolicyError, PolicyLoadError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import EngineName
from agenttool_otel.policy.engines.refusing import RefusingEngine
from agenttool_otel.records import ToolResult


def from_environment() -> Governor:
    """Build the default Governor; where its policy or settings can't be used, one that refuses
    every call.
    """
    try:
        return Governor()
    except (PolicyError, ConfigurationError) as error:
        refusal = error if isinstance(error, PolicyError) else PolicyLoadError(str(error))
        # of settings that can't be used the ones about policy are left out: nothing is decided by
        # them
        usable = replace(Settings.load(), problems=(), policy_engine=EngineName.EMBEDDED.value)
        return Governor(policy=RefusingEngine(refusal), settings=usable)


build_default_with(from_environment)


def default_governor() -> Governor:
    """Return the default Governor, built at first use from the environment.

    A policy that can't be loaded does not make tools run unguarded, nor does it break the program
    at import: the Governor refuses every call, with a span that has the reason, until ``configure`` is
    given a policy that works.
    """
    return cast(Governor, default_runtime())


def configure(governor: Governor | None = None, /, **options: Any) -> Governor:
    """Replace the default Governor; tools that were governed without one of their own follow at
    their next call.

    Args:
        governor: the new default; built from ``options`` (see Governor) where not given.
        options: arguments of Governor.

    Returns:
        The default Governor.

    Raises:
        PolicyLoadError: the policy can't be used; the old default stays.
        ConfigurationError: an option can't be used.
    """
    fresh = governor if governor is not None else Governor(**options)
    old = replace_default(fresh)
    if isinstance(old, Governor) and old is not fresh:
        old.close()
    return fresh


def resume(invocation_id: str) -> ToolResult:
    """Continue a paused call of the default Governor: the same invocation, decided again, run once,
    as approved.

    Args:
        invocation_id: the invocation, from ``ApprovalRequired.invocation_id``.

    Returns:
        The envelope of the run, of the rejection, or ``pending`` while nobody has answered.

    Raises:
        ApprovalNotFound: no call of that id waits.
        UnknownTool: this process has no tool of that id.
    """
    return default_governor().resume(invocation_id)


async def aresume(invocation_id: str) -> ToolResult:
    """The same without blocking the event loop.

    Args:
        invocation_id: the invocation.

    Returns:
        The envelope, as ``resume``.
    """
    return await default_governor().aresume(invocation_id)
