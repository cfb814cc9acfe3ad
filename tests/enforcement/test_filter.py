"""Which system calls the filter refuses, by a machine that runs BPF as the kernel does."""

from __future__ import annotations

import os
import random
import struct
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import pytest

from agenttool_otel.enforcement import bpf, seccomp
from agenttool_otel.enforcement.bpf import Check, Refusal, only

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="system calls")

NATIVE, OTHER = 0xC000003E, 0x40000003  # AUDIT_ARCH_X86_64, AUDIT_ARCH_I386
ALLOWED, ERROR = 0x7FFF0000, 0x00050000
EPERM, ENOSYS = 1, 38

Arguments: TypeAlias = tuple[int, ...]


@cache
def decoded(program: bytes) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("=HBBI", program))


def judge(program: bytes, number: int, arguments: Arguments = (), arch: int = NATIVE) -> int:
    """Run a program on struct seccomp_data; return the error, 0 where the call is allowed."""
    arguments = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, arch, 0, *arguments)
    lines = decoded(program)
    value = place = 0
    while True:
        code, if_true, if_false, operand = lines[place]
        place += 1
        if code == 0x06:
            assert operand == ALLOWED or operand & ERROR
            return 0 if operand == ALLOWED else operand & 0xFFFF
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x54:
            value &= operand
        else:
            holds = {
                0x15: value == operand,
                0x25: value > operand,
                0x35: value >= operand,
                0x45: bool(value & operand),
            }[code]
            place += if_true if holds else if_false


def refused(refusal: Refusal, *arguments: int) -> int:
    return judge(bpf.program(NATIVE, 450, {7: refusal}), 7, arguments)


def test_a_call_is_refused_by_its_number_alone() -> None:
    program = bpf.program(NATIVE, 450, {7: Refusal(13), 8: Refusal(13), 450: Refusal(5)})
    answers = {number: judge(program, number) for number in (0, 6, 7, 8, 9, 449, 450)}
    assert answers == {0: 0, 6: 0, 7: 13, 8: 13, 9: 0, 449: 0, 450: 5}


def test_a_number_that_is_not_known_does_not_exist() -> None:
    program = bpf.program(NATIVE, 450, {})
    numbers = (451, 1000, 0x40000001, 0xFFFFFFFF)  # of x32, and of none
    assert {judge(program, number) for number in numbers} == {ENOSYS}


def test_another_architecture_has_no_call() -> None:
    program = bpf.program(NATIVE, 450, {})
    assert {judge(program, number, arch=OTHER) for number in (0, 1, 60, 500)} == {EPERM}


def test_an_argument_is_compared_in_its_lower_half() -> None:
    kill = Refusal(EPERM, (Check(0, 9), Check(0, 12)))
    answers = [refused(kill, value) for value in (8, 9, 12, 9 | 1 << 32)]
    assert answers == [0, EPERM, EPERM, EPERM]


def test_one_bit_of_an_argument_is_enough() -> None:
    clone = Refusal(EPERM, (Check(0, 0x30, any_bit=True),))
    assert [refused(clone, value) for value in (0xF, 0x1F, 0x20, 0xC0)] == [0, EPERM, EPERM, 0]


def test_an_argument_may_have_one_value_in_both_halves() -> None:
    itself = Refusal(EPERM, only(1, 5))
    assert [refused(itself, 0, value) for value in (5, 0, 5 | 1 << 32)] == [0, EPERM, EPERM]


def test_a_program_too_long_for_its_jumps_is_none() -> None:
    with pytest.raises(struct.error):
        bpf.program(NATIVE, 450, {number: Refusal(number) for number in range(0, 450, 2)})


def test_the_table_fits_on_aarch64() -> None:
    library = pytest.importorskip("pyseccomp")
    other = library.Arch.AARCH64
    refusals = {
        library.resolve_syscall(other, name): refusal
        for name, refusal in seccomp._refusals(4711).items()
    }
    program = bpf.program(int(other), 450, refusals)
    answers = [judge(program, number, (4711,), int(other)) for number in (129, 63, 165)]
    assert answers == [EPERM, 0, 0]  # kill, read, getrusage


def of_libseccomp(architecture: int, refusals: dict[int, Refusal]) -> bytes:
    """Return libseccomp's program of the same rules."""
    library = pytest.importorskip("pyseccomp")
    rules = library.SyscallFilter(library.ALLOW)
    rules.set_attr(library.Attr.ACT_BADARCH, library.ERRNO(EPERM))
    for number, refusal in refusals.items():
        for arguments in libseccomp_rules(library, refusal.checks):
            rules.add_rule_exactly(library.ERRNO(refusal.code), number, *arguments)
    with os.fdopen(os.memfd_create("filter"), "r+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def libseccomp_rules(library: Any, checks: tuple[Check, ...]) -> Iterator[list[Any]]:
    if not checks:
        yield []
    for check in checks:
        half = 32 * check.upper
        bits = [1 << bit for bit in range(32) if check.value >> bit & 1]
        mask = check.value if check.any_bit else 0xFFFFFFFF
        if check.any_bit and check.refused:
            values = [(bit << half, bit << half) for bit in bits]
        elif check.any_bit:
            values = [(mask << half, 0)]
        elif check.refused:
            values = [(mask << half, check.value << half)]
        else:
            whole = sum(c.value << 32 * c.upper for c in checks[:2])
            yield [library.Arg(check.position, library.NE, whole)]
            continue
        for masked, value in values:
            yield [library.Arg(check.position, library.MASKED_EQ, masked, value)]


def test_it_refuses_what_libseccomp_would_refuse() -> None:
    library = pytest.importorskip("pyseccomp")
    native = library.system_arch()
    refusals = {}
    for name, refusal in seccomp._refusals(4711).items():
        number = library.resolve_syscall(native, name)
        if number >= 0:
            refusals[number] = refusal
    ours, theirs = bpf.program(native, 450, refusals), of_libseccomp(native, refusals)
    values = {0, 1, *(1 << bit for bit in range(64))}
    values |= {check.value for refusal in refusals.values() for check in refusal.checks}
    values |= {value | 1 << 32 for value in values} | {value + 1 for value in values if value < 99}
    chosen = random.Random(1)
    for number in range(451):
        few = sorted(values) if number in refusals and refusals[number].checks else [0, 1]
        for position in range(6 if len(few) > 2 else 1):
            for value in few:
                arguments = [chosen.choice((0, 1)) for _ in range(6)]
                arguments[position] = value
                call = number, tuple(arguments), native
                assert judge(ours, *call) == judge(theirs, *call), call
