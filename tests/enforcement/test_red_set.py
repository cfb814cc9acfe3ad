"""Lines and functions that try to get out, each really run as root and as an ordinary user."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from red_arena import ORDINARY, Agent, Arena
from red_lines import FUNCTIONS, LINES

from agenttool_otel.enforcement import available

PROOF = available()["read"]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROOF.proven, reason=PROOF.reason)]
USERS = [0, ORDINARY] if os.getuid() == 0 else [os.getuid()]


@pytest.fixture(scope="module", params=USERS, ids=["root", "ordinary"][: len(USERS)])
def agent(request: pytest.FixtureRequest) -> Iterator[tuple[Agent, Arena]]:
    arena = Arena(request.param)
    made = Agent(arena)
    assert made.ready.proven, made.ready
    yield made, arena
    made.close()
    arena.close()


def check(agent: Agent, arena: Arena, kind: str, name: str, marker: str = "secret-") -> None:
    before = arena.state()
    shown = agent.ask(kind, name)
    assert arena.state() == before, shown
    assert arena.connections() == 0, shown
    assert marker not in shown.replace("'secret-'", ""), shown
    assert agent.process.is_alive()
    until = time.monotonic() + 5
    while arena.left() and time.monotonic() < until:
        time.sleep(0.05)
    assert arena.left() == [], shown


@pytest.mark.parametrize("name", LINES)
def test_a_line_has_no_effect(agent: tuple[Agent, Arena], name: str) -> None:
    check(*agent, "line", name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_no_effect(agent: tuple[Agent, Arena], name: str) -> None:
    check(*agent, "function", name)


@pytest.fixture(scope="module", params=USERS, ids=["root", "ordinary"][: len(USERS)])
def layered(request: pytest.FixtureRequest) -> Iterator[tuple[Agent, Arena]]:
    # a layer has a /tmp of its own, where nothing would be left to protect
    arena = Arena(request.param, "/srv" if os.access("/srv", os.W_OK) else str(Path.home()))
    made = Agent(arena)
    try:
        if reason := made.ask("proof of a layer", ""):
            pytest.skip(f"no rehearsal here: {reason}")
        yield made, arena
    finally:
        made.close()
        arena.close()


@pytest.mark.slow  # bombs go on until their time is over
@pytest.mark.parametrize("name", LINES)
def test_a_line_on_a_layer_has_no_effect(layered: tuple[Agent, Arena], name: str) -> None:
    # a layer has memory, processes and a network of its own: a line may have them, but not the secret
    check(*layered, "layer", name, layered[1].word)


EFFECTIVE = (
    "redirect", "tee", "mv into the temporary directory", "sed in place", "chmod", "touch", "hard link",
    "hard link into the temporary directory", "cat the secret", "secret by /proc", "environment of the agent",
    "new session", "tcp", "udp", "curl by a Unix socket", "python abstract", "make", "git alias", "file attributes",
    "extended attribute", "shared memory", "core dump",
)  # fmt: skip
"""Lines that do something without a profile on most hosts: a set that nothing could fail shows
nothing.
"""


def test_without_a_profile_the_same_lines_have_effects() -> None:
    effects = 0
    for name in EFFECTIVE:
        arena = Arena(os.getuid())
        agent = Agent(arena)
        before = arena.state()
        shown = agent.ask("plain", name)
        changed = arena.state() != before
        effects += bool(changed or arena.connections() or "secret-" in shown or arena.left())
        agent.close()
        arena.close()
        subprocess.run(["pkill", "-f", arena.nap], check=False)
    assert effects >= 0.7 * len(EFFECTIVE)
