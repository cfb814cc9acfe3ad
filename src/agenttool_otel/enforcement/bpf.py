"""System calls that are refused, as a BPF program of few instructions.

A thread installs the program for itself, and the kernel translates it each time, and runs it once for each number of
a call. libseccomp's program of the same rules has twice the instructions and costs twice the time.

The program looks for a call's number by halves, in ranges of numbers that are judged alike. The lower half of an
argument is in front: py-landlock, too, knows x86_64 and aarch64 alone.

Source: https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain, groupby
from typing import Final, NamedTuple, TypeAlias

SIZE: Final = 8
"""Bytes of an instruction."""

_INSTRUCTION: Final = "=HBBI"  # code, instructions to skip if true, if false, operand
_LOAD, _RETURN = 0x20, 0x06
_IF_EQUAL, _IF_FROM, _IF_ANY = 0x15, 0x35, 0x45
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where struct seccomp_data has them
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_LOW: Final = 0xFFFFFFFF


class Check(NamedTuple):
    """A condition on half of an argument.

    Attributes:
        position: the argument's, from 0.
        value: what the half is compared with.
        any_bit: whether one common bit is enough; else both must be equal.
        upper: whether it is the upper half.
        refused: whether the call is refused where the condition holds, or where it does not.
    """

    position: int
    value: int
    any_bit: bool = False
    upper: bool = False
    refused: bool = True


class Refusal(NamedTuple):
    """How a call is judged.

    Attributes:
        code: the error that its caller gets.
        checks: it is refused where one of them refuses it; always where there are none.
    """

    code: int
    checks: tuple[Check, ...] = ()


def only(position: int, value: int) -> tuple[Check, ...]:
    """Return the checks that refuse a call unless an argument has a value in all its 64 bits."""
    return (
        Check(position, value & _LOW, refused=False),
        Check(position, value >> 32, upper=True, refused=False),
    )


class _Line(NamedTuple):
    """An instruction; a jump goes to the line with a label, or on where there is none."""

    code: int
    operand: int
    if_true: Hashable = None
    if_false: Hashable = None
    label: Hashable = None


_Range: TypeAlias = tuple[int, Refusal | None]  # its first number, and how its calls are judged
_UNKNOWN: Final = Refusal(errno.ENOSYS)
_FOREIGN: Final = Refusal(errno.EPERM)


def program(architecture: int, last: int, refusals: Mapping[int, Refusal]) -> bytes:
    """Return the instructions.

    Args:
        architecture: as in ``AUDIT_ARCH_*``; calls of another one are refused with EPERM.
        last: the last number that is known; calls above it are refused with ENOSYS.
        refusals: by number; every other call is allowed.

    Raises:
        struct.error: it is too long for its jumps.
    """
    ranges = list(_ranges(last, refusals))
    judged = dict.fromkeys([_FOREIGN, *(refusal for _, refusal in ranges if refusal is not None)])
    lines = [
        _Line(_LOAD, _ARCHITECTURE),
        _Line(_IF_EQUAL, architecture, if_false=_goal(_FOREIGN)),
        _Line(_LOAD, _NUMBER),
        *_search(ranges),
        *chain.from_iterable(map(_checked, judged)),
        _Line(_RETURN, _ALLOW, label=_ALLOW),
    ]
    for code in dict.fromkeys(refusal.code for refusal in judged):
        lines.append(_Line(_RETURN, _ERROR | code, label=_ERROR | code))
    return _assembled(lines)


def _ranges(last: int, refusals: Mapping[int, Refusal]) -> Iterator[_Range]:
    judged = [(number, refusals.get(number)) for number in range(last + 1)]
    for refusal, numbers in groupby([*judged, (last + 1, _UNKNOWN)], key=lambda pair: pair[1]):
        yield next(numbers)[0], refusal


def _search(ranges: list[_Range]) -> Iterator[_Line]:
    """Yield the lines that find a number's range among some."""
    if len(ranges) == 1:
        return
    half = len(ranges) // 2
    below, above = ranges[:half], ranges[half:]
    first = above[0][0]
    yield _Line(_IF_FROM, first, _found(above), _found(below), label=_found(ranges))
    yield from _search(below)
    yield from _search(above)


def _found(ranges: list[_Range]) -> Hashable:
    """Return the label of the next question, or of how the only range is judged."""
    if len(ranges) > 1:
        return ranges[0][0], ranges[-1][0]
    return _goal(ranges[0][1])


def _goal(refusal: Refusal | None) -> Hashable:
    if refusal is None:
        return _ALLOW
    return refusal if refusal.checks else _ERROR | refusal.code


def _checked(refusal: Refusal) -> Iterator[_Line]:
    """Yield the lines of a call of which some arguments are refused."""
    label: Hashable = refusal
    loaded = None
    for check in refusal.checks:
        place = _ARGUMENTS + 8 * check.position + 4 * check.upper
        if place != loaded:
            yield _Line(_LOAD, place, label=label)
            loaded, label = place, None
        goals = [_ERROR | refusal.code, _ALLOW if check is refusal.checks[-1] else None]
        code = _IF_ANY if check.any_bit else _IF_EQUAL
        yield _Line(code, check.value, *(goals if check.refused else reversed(goals)))


def _assembled(lines: list[_Line]) -> bytes:
    places = {line.label: place for place, line in enumerate(lines) if line.label is not None}

    def skipped(place: int, label: Hashable) -> int:
        return 0 if label is None else places[label] - place - 1

    return b"".join(
        struct.pack(
            _INSTRUCTION,
            line.code,
            skipped(place, line.if_true),
            skipped(place, line.if_false),
            line.operand,
        )
        for place, line in enumerate(lines)
    )
