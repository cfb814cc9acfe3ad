"""What a type checker has to say of governed code; checked by test_snippet.py, never run."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, reveal_type

from agenttool_otel import Governor, default_governor, govern
from agenttool_otel.govern.typing import Governed


@govern
def bare(path: str) -> str:
    return path


@govern(read_only=True)
def read_file(path: str, *, limit: int = 10) -> str:
    return path


@default_governor().govern(read_only=True)
async def fetch(url: str) -> bytes:
    return b""


@govern
def lines(path: str) -> Iterator[str]:
    yield path


@govern
async def rows(path: str) -> AsyncIterator[int]:
    yield 1


governor: Governor = default_governor()


@governor.govern
def bare_of_a_governor(n: int) -> int:
    return n


reveal_type(bare("x"))  # R: builtins.str | str
reveal_type(read_file("x", limit=3))  # R: builtins.str | str
reveal_type(read_file.tool)  # R: agenttool_otel.call.tool.GovernedTool
reveal_type(read_file.tool.invoke(path="x").status)  # R: agenttool_otel.names.results.ResultStatus
reveal_type(read_file.tool.check(path="x").allowed)  # R: builtins.bool | bool
reveal_type(read_file.__wrapped__("x"))  # R: builtins.str | str
reveal_type(bare_of_a_governor(1))  # R: builtins.int | int
reveal_type(lines("x"))  # R: typing.Iterator[builtins.str] | typing.Iterator[str]
reveal_type(rows("x"))  # R: typing.AsyncIterator[builtins.int] | typing.AsyncIterator[int]
read_file(1)  # E: arg-type
read_file("x", limits=3)  # E: call-arg
_ = read_file.tols  # E: attr-defined
twice = govern(read_only=True)(bare.__wrapped__)
reveal_type(twice.tool)  # R: agenttool_otel.call.tool.GovernedTool
govern(read_onyl=True)  # E: call-overload
governor.govern(read_onyl=True)  # E: call-overload
govern(permission={"risk_levle": "low"})  # E: call-overload
govern(permission={"risk_level": "low"}, execution={"timeout_ms": 500})


async def awaits() -> None:
    reveal_type(await fetch("x"))  # R: builtins.bytes | bytes
    async for row in rows("x"):
        reveal_type(row)  # R: builtins.int | int
    fetch(3)  # E: arg-type


class Files:
    """Methods of every sort."""

    @govern
    def method(self, path: str) -> int:
        return 1

    @govern(read_only=True)
    async def amethod(self, path: str) -> int:
        return 1

    @governor.govern(read_only=True)
    def of_a_governor(self, path: str) -> int:
        return 1

    @govern
    def nothing(self) -> int:
        return 1

    @classmethod
    @govern
    def cls_below(cls, path: str) -> int:
        return 1

    @govern
    @classmethod
    def cls_above(cls, path: str) -> int:
        return 1

    @staticmethod
    @govern
    def static_below(path: str) -> int:
        return 1

    @govern
    @staticmethod
    def static_above(path: str) -> int:
        return 1


files = Files()
reveal_type(files.method("x"))  # R: builtins.int | int
reveal_type(files.of_a_governor("x"))  # R: builtins.int | int
reveal_type(files.nothing())  # R: builtins.int | int
reveal_type(Files.method(files, "x"))  # R: builtins.int | int
reveal_type(files.cls_below("x"))  # R: builtins.int | int
reveal_type(Files.cls_below("x"))  # R: builtins.int | int
reveal_type(Files.cls_above("x"))  # R: builtins.int | int
reveal_type(files.static_below("x"))  # R: builtins.int | int
reveal_type(Files.static_above("x"))  # R: builtins.int | int
reveal_type(files.static_above("x"))  # R: builtins.int | int
reveal_type(files.method.tool)  # R: agenttool_otel.call.tool.GovernedTool
reveal_type(Files.cls_above.tool)  # R: agenttool_otel.call.tool.GovernedTool
files.method(1)  # E: call-overload
files.method("x", "y", "z")  # E: call-overload
Files.static_above(1)  # E: call-overload


async def awaits_methods() -> None:
    reveal_type(await files.amethod("x"))  # R: builtins.int | int


def takes(
    function: Callable[[str], str],
    bound: Callable[[str], int],
    later: Callable[[str], Awaitable[bytes]],
) -> None:
    """Plain callables."""


takes(bare, files.method, fetch)
as_declared: Governed[[str], str] = bare
reveal_type(govern(partial(pow, 2), name="power")(3))  # R: builtins.int | int


class FrameworkTool:
    """An object that is no callable: it keeps its class."""

    name: str = "search"


reveal_type(govern(FrameworkTool()).name)  # R: builtins.str | str
made: list[Any] = [govern(tool) for tool in (bare, read_file)]
