from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import FakeClock, postgres_binaries, running_postgres

from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore

KEY = generate_key()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    if postgres_binaries() is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    with running_postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A database of this test alone."""
    import uuid

    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres_server}/{name}"


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow])]
)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/approvals.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def open_store(store_url: str, clock: FakeClock) -> Iterator[Callable[..., ApprovalStore]]:
    """Opens the test's database, as often as wanted."""
    stores: list[ApprovalStore] = []

    def open_one(**options: Any) -> ApprovalStore:
        defaults: dict[str, Any] = {
            "key": KEY,
            "clock": clock,
            "ticks": clock.ticks,
            "timeout": 3.0,
        }
        stores.append(ApprovalStore(store_url, **{**defaults, **options}))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., ApprovalStore]) -> ApprovalStore:
    return open_store()
