"""Which persistence strategy a result gets: a pure choice from contract, size, sensitivity and
obligation.

The stricter word wins: an obligation of the policy can forbid what a contract allows, and a limit
of the policy can only lower the contract's. A word that nobody knows drops the result rather than
guess.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from agenttool_otel.names import PersistenceStrategy, RedactionState
from agenttool_otel.records.persistence import ResultPersistence
from agenttool_otel.results.stores.types import PersistedRef

SENSITIVE: Final = frozenset({"secret", "credential", "credentials", "restricted"})
"""Values of ``data_sensitivity`` whose results are never written to a store."""

_S = PersistenceStrategy
# From the most permissive to the strictest about what is kept and shown.
_ORDER: Final = (
    _S.INLINE,
    _S.PREVIEW_AND_PERSIST,
    _S.REDACT,
    _S.REF_ONLY,
    _S.NEVER_PERSIST,
    _S.DROP_WITH_REASON,
)


class Demand(NamedTuple):
    """What contract and policy want of one result; a tuple because one is made for each call."""

    # the output contract's ``max_inline_chars`` (or ``max_inline_bytes`` for binary content)
    contract_limit: Any = None
    # the policy's; it can only lower the other. A limit that is no whole number from 0 is read as 0
    obliged_limit: Any = None
    # the contract's ``persistence_policy_ref``, where it is one of the strategies
    contract_strategy: str | None = None
    obliged_strategy: str | None = None  # the policy's strategy
    sensitivity: str | None = None  # ``data_sensitivity`` of the permission profile; see SENSITIVE
    redact: bool = False  # contract or policy want the result redacted
    supports_persistence: bool = True  # as in the execution profile
    # the tool reads persisted results itself; storing its output again would never end
    exempt: bool = False

    @property
    def binding(self) -> bool:
        """Whether the policy decides what the caller gets, too: its limit and its strategy hold at
        every door.
        """
        return self.obliged_limit is not None or self.obliged_strategy is not None


NO_DEMAND: Final = Demand()
"""Nobody wants anything."""


class StrategyChoice(NamedTuple):
    """What is to be done with one result."""

    strategy: PersistenceStrategy  # the strategy
    reason: str  # why, a stable word for records and spans
    max_inline_chars: int  # characters that may reach the model inline
    over_limit: bool  # whether the result is larger than that

    @property
    def persists(self) -> bool:
        """Whether the payload goes to a store."""
        return self.strategy in (_S.PREVIEW_AND_PERSIST, _S.REF_ONLY) or (
            self.strategy is _S.REDACT and self.over_limit
        )

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to do: the result is small and inline."""
        return self.strategy is _S.INLINE and not self.over_limit

    def record(
        self,
        invocation_id: str,
        strategy: PersistenceStrategy,
        reason: str,
        state: RedactionState,
        *,
        size: int | None,
        preview_bytes: int | None = None,
        ref: PersistedRef | None = None,
        result_id: str | None = None,
    ) -> ResultPersistence:
        """Make the record of what was done in the end."""
        return ResultPersistence(
            invocation_id=invocation_id,
            result_id=result_id,
            strategy=strategy,
            threshold={"max_inline_chars": self.max_inline_chars},
            original_size_bytes=size,
            preview_size_bytes=preview_bytes,
            persisted_ref=None
            if ref is None
            else {**ref.to_json(), "redaction_state": state.value},
            redaction_state=state,
            reason=reason,
        )


def choose_strategy(
    demand: Demand = NO_DEMAND, *, size: int | None, default_limit: int, has_store: bool = True
) -> StrategyChoice:
    """Choose the strategy of a result."""
    limit = _limit(demand.contract_limit, default_limit)
    if demand.obliged_limit is not None:
        limit = min(limit, _limit(demand.obliged_limit, 0))
    over = size is None or size > limit
    wanted, reason = _wanted(demand)
    if wanted in (_S.DROP_WITH_REASON, _S.NEVER_PERSIST):
        return StrategyChoice(wanted, reason, limit, over)
    if wanted is _S.INLINE and demand.obliged_strategy == _S.INLINE.value:
        # the policy obliges to "inline": nothing is stored, and only its own limit still cuts
        return _obliged_inline(reason, limit, cut=demand.obliged_limit is not None and over)
    if over and wanted in (_S.INLINE, _S.REDACT):
        wanted = _S.PREVIEW_AND_PERSIST
        reason = "result_size_unknown"
        if size is not None:
            reason = "result_exceeded_inline_limit"
    if wanted in (_S.PREVIEW_AND_PERSIST, _S.REF_ONLY):
        blocked = _blocked(demand, has_store=has_store)
        wanted, reason = _stored(wanted, reason, blocked)
    elif wanted is _S.INLINE:
        wanted, reason = _inline(demand)
    return StrategyChoice(wanted, reason, limit, over)


def _obliged_inline(reason: str, limit: int, *, cut: bool) -> StrategyChoice:
    strategy = _S.NEVER_PERSIST if cut else _S.INLINE
    return StrategyChoice(strategy, reason, limit, cut)


def _inline(demand: Demand) -> tuple[PersistenceStrategy, str]:
    if demand.redact:
        return _S.REDACT, "redaction_required"
    # the contract's "inline" is what a small result gets in any case
    return _S.INLINE, "within_inline_limit"


def _stored(
    wanted: PersistenceStrategy, reason: str, blocked: str | None
) -> tuple[PersistenceStrategy, str]:
    """Return a strategy that needs a store, or the one in its place where nothing may be stored."""
    if blocked is None:
        return wanted, reason
    # what only a reference may show must not be shown, and can't be kept
    if wanted is _S.REF_ONLY:
        return _S.DROP_WITH_REASON, blocked
    return _S.NEVER_PERSIST, blocked


def _wanted(demand: Demand) -> tuple[PersistenceStrategy, str]:
    contract = demand.contract_strategy
    obliged = demand.obliged_strategy
    sensitivity = demand.sensitivity
    found: list[tuple[PersistenceStrategy, str]] = [(_S.INLINE, "within_inline_limit")]
    if contract is not None and contract in _S.__members__.values():
        # A reference to some other system's rule is not ours to interpret.
        found.append((_S(contract), "output_contract"))
    if obliged is not None:
        if obliged in _S.__members__.values():
            found.append((_S(obliged), "policy_obligation"))
        else:
            # a newer policy's word: what it asks for is not known, so nothing is shown
            found.append((_S.DROP_WITH_REASON, "unknown_strategy"))
    if sensitivity is not None and sensitivity.lower() in SENSITIVE:
        found.append((_S.NEVER_PERSIST, "data_sensitivity"))
    return max(reversed(found), key=lambda item: _ORDER.index(item[0]))


def _blocked(demand: Demand, *, has_store: bool) -> str | None:
    if demand.exempt:
        return "circular_result_guard"
    if not demand.supports_persistence:
        return "persistence_unsupported"
    return None if has_store else "no_store"


def _limit(value: Any, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return 0
    return value
