"""Several people for one call: who has agreed, who still has to, and which role each counts as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agenttool_otel.approvals.identity import is_same_identity


class Agreement(NamedTuple):
    """One person's yes."""

    person: str  # who gave it
    roles: frozenset[str]  # that person's roles


class StillNeeded(NamedTuple):
    """What a request lacks for a run."""

    people: int  # how many more different people have to agree; 0: none
    roles: tuple[str, ...]  # roles of which the next one needs one; empty: any


def still_needed(
    needed: int, required_roles: Sequence[str], given: Sequence[Agreement]
) -> StillNeeded:
    """Return who has to agree beside those who did.

    Args:
        needed: how many different people have to agree.
        required_roles: roles that have to agree, each a person of its own.
        given: the answers with yes. A person who gave two counts once, with the first.
    """
    people = different_people(given)
    filled = len(roles_filled(required_roles, people))
    open_roles = len(set(required_roles)) - filled
    open_people = needed - len(people)
    if open_people > open_roles or open_roles == 0:
        return StillNeeded(max(open_people, 0), ())
    # finance may be filled by ann or by bob: the role that is open depends on who counts as what
    helpful = [role for role in sorted(set(required_roles)) if _helps(role, required_roles, people)]
    return StillNeeded(open_roles, tuple(helpful))


def different_people(given: Sequence[Agreement]) -> list[Agreement]:
    """Return the first answer of each person."""
    people: list[Agreement] = []
    for agreement in given:
        if not any(is_same_identity(agreement.person, other.person) for other in people):
            people.append(agreement)
    return people


def roles_filled(required_roles: Sequence[str], people: Sequence[Agreement]) -> dict[str, int]:
    """Return which person counts as which role: as many roles as can be, each by another person.

    Args:
        required_roles: the roles.
        people: answers of different people.
    """
    filled: dict[str, int] = {}
    for number in range(len(people)):
        _place(number, people, sorted(set(required_roles)), filled, set())
    return filled


def counted(
    required_roles: Sequence[str], given: Sequence[Agreement]
) -> list[tuple[Agreement, str | None]]:
    """Return each person's yes, and the role that it counts as; ``None`` where it counts as none.

    Args:
        required_roles: roles that have to agree.
        given: the answers with yes.
    """
    people = different_people(given)
    roles = {number: role for role, number in roles_filled(required_roles, people).items()}
    return [(agreement, roles.get(number)) for number, agreement in enumerate(people)]


def people_text(left: StillNeeded) -> str:
    """Return who still has to agree, in words; empty where nobody has to.

    Args:
        left: what a request lacks.
    """
    if not left.people:
        return ""
    people = "1 more person" if left.people == 1 else f"{left.people} more people"
    if not left.roles:
        return people
    return f"{people}, next one with a role of: {', '.join(left.roles)}"


def _place(
    number: int,
    people: Sequence[Agreement],
    required: Sequence[str],
    filled: dict[str, int],
    tried: set[str],
) -> bool:
    """Let a person count as a role, where need be by letting others count as another."""
    for role in required:
        if role in tried or role not in people[number].roles:
            continue
        tried.add(role)
        holder = filled.get(role)
        if holder is None or _place(holder, people, required, filled, tried):
            filled[role] = number
            return True
    return False


def _helps(role: str, required_roles: Sequence[str], people: Sequence[Agreement]) -> bool:
    """Return whether one more person of a role fills one more role."""
    more = [*people, Agreement("", frozenset((role,)))]
    return len(roles_filled(required_roles, more)) > len(roles_filled(required_roles, people))
