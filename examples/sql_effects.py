"""A tool that changes rows reports how many before it commits: what is denied is rolled back.

python examples/sql_effects.py
"""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, func, select, update
from sqlalchemy.pool import StaticPool

from agenttool_otel import (
    ApprovalAnswer,
    ApprovalRequest,
    EffectChange,
    Governor,
    agent_context,
    report_effects,
)

metadata = MetaData()
products = Table(
    "products",
    metadata,
    Column("name", String, primary_key=True),
    Column("category", String),
    Column("price", Integer),
)
engine = create_engine("sqlite://", poolclass=StaticPool)


def raise_prices(category: str, by: int) -> int:
    """Raise the prices of a category."""
    with engine.begin() as connection:
        of_category = products.c.category == category
        raised = update(products).where(of_category).values(price=products.c.price + by)
        rows = connection.execute(raised).rowcount
        report_effects([EffectChange("sql", "products", "changed", rows)])
    return rows


def total() -> int:
    """Return the sum of all prices."""
    with engine.connect() as connection:
        return int(connection.execute(select(func.sum(products.c.price))).scalar_one())


def fill() -> None:
    """Make 150 books and 3 maps at a price of 10."""
    metadata.drop_all(engine)
    metadata.create_all(engine)
    rows = [("books", 150), ("maps", 3)]
    with engine.begin() as connection:
        for category, count in rows:
            for number in range(count):
                row = {"name": f"{category} {number}", "category": category, "price": 10}
                connection.execute(products.insert().values(row))


def answer(request: ApprovalRequest) -> ApprovalAnswer:
    """Agree to the tool, and to no more than a hundred rows."""
    changed = request.effects["counts"]["reported"] if request.effects else 0
    print(f"asked: {request.message}; {request.diff or 'nothing is known of its effects yet'}")
    return ApprovalAnswer(approved=changed <= 100, answered_by="user:ada", reason="too many rows")


def main() -> None:
    """Raise the prices of a few maps, and then of all books."""
    fill()
    governor = Governor(approver=answer)
    tool = governor.govern(
        raise_prices,
        read_only=False,
        reports_effects=True,
        write_effects=["remote_mutation"],
    )
    with agent_context(actor="agent:shop", session_id="s-1", interactive=True):
        for category in ("maps", "books"):
            result = tool.tool.invoke({"category": category, "by": 1})
            print(f"{category}: {result.status}, the sum of all prices is {total()}")


if __name__ == "__main__":
    main()
