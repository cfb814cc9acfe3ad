"""Real agents with our hooks: what ran is judged by the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_agents import REAL_AGENTS, Workplace, workplace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(params=REAL_AGENTS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Workplace:
    return workplace(request.param, tmp_path)


def test_only_what_is_permitted_runs(place: Workplace) -> None:
    place.hooks("install")
    with place.served():
        script = place.run("touch a.txt", "echo KEY=1 > .env", "rm -rf build", "touch b.txt")
    assert sorted(path.name for path in place.project.iterdir()) == ["a.txt", "b.txt", "build"]
    assert "the path is a sensitive place" in script.seen[1]


def test_a_server_that_was_killed_blocks(place: Workplace) -> None:
    place.hooks("install")
    with place.served() as running:
        place.run("touch a.txt")
        running.kill()
        running.wait()
        script = place.run("touch b.txt")
    assert sorted(path.name for path in place.project.iterdir()) == ["a.txt", "build"]
    assert "decided nothing" in script.seen[0]


def test_without_hooks_the_same_commands_run(place: Workplace) -> None:
    place.hooks("install")
    place.hooks("remove")
    place.run("echo KEY=1 > .env", "rm -rf build")
    assert [path.name for path in place.project.iterdir()] == [".env"]
