"""tau2's retail desk without a model: its honest writes, each behind the reads that an agent makes first.

No attack is in it: printed is what a user is asked about who only wants their order changed, by
rule. Before a write the agent reads the user, the orders and the products that it names, as the desk's
policy has it. The user's words are the scenario of the task, which a user would say in turns. Usage:

    python -m benchmarks.tau2 DATA [--preset assistant] [--asked]

DATA is the folder ``data/tau2/domains/retail`` of a copy of tau2-bench.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from agenttool_otel import Governor, ToolDenied, agent_context

_READS: Final[dict[str, Any]] = {
    "namespace": "shop",
    "read_only": True,
    "open_world": False,
    "access_kinds": [],
    "tool_kind": "retrieval",
}
_WRITES: Final[dict[str, Any]] = {
    "namespace": "shop",
    "read_only": False,
    "destructive": False,
    "open_world": False,
    "access_kinds": [],
    "write_effects": ["remote_mutation"],
}
_Reason = Literal["no longer needed", "ordered by mistake"]


class Desk:
    """The shop's tools over its data; a write gives the order as it was."""

    def __init__(self, folder: Path) -> None:
        self.data = json.loads((folder / "db.json").read_text("utf-8"))
        self.products = {
            item: product["product_id"]
            for product in self.data["products"].values()
            for item in product["variants"]
        }

    def get_user_details(self, user_id: str) -> Any:
        """Get the details of a user."""
        return self.data["users"].get(user_id, "no such user")

    def get_order_details(self, order_id: str) -> Any:
        """Get the status and details of an order."""
        return self.data["orders"].get(order_id, "no such order")

    def get_product_details(self, product_id: str) -> Any:
        """Get the inventory details of a product."""
        return self.data["products"].get(product_id, "no such product")

    def cancel_pending_order(self, order_id: str, reason: _Reason) -> Any:
        """Cancel a pending order."""
        return self.get_order_details(order_id)

    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Any:
        """Exchange items in a delivered order to new items of the same product type."""
        return self.get_order_details(order_id)

    def modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Any:
        """Modify items in a pending order to new items of the same product type."""
        return self.get_order_details(order_id)

    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Any:
        """Modify the payment method of a pending order."""
        return self.get_order_details(order_id)

    def return_delivered_order_items(
        self, order_id: str, item_ids: list[str], payment_method_id: str
    ) -> Any:
        """Return some items of a delivered order."""
        return self.get_order_details(order_id)

    def modify_pending_order_address(
        self,
        order_id: str,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,
    ) -> Any:
        """Modify the shipping address of a pending order."""
        return self.get_order_details(order_id)

    def modify_user_address(
        self,
        user_id: str,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,
    ) -> Any:
        """Modify the default address of a user."""
        return self.get_user_details(user_id)


class Replay:
    """Replays the writes of each task, and counts those that are asked about."""

    def __init__(self, folder: Path, preset: str) -> None:
        self._desk = Desk(folder)
        self.writes = 0
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        self._question: Any = None
        data = {"agenttool": {"settings": {"preset": preset}}}
        governor = Governor(policy_data=data, approver=self._answer)
        self._tools = {}
        for name, method, facts in desk_tools(self._desk):
            self._tools[name] = governor.govern(method, name=name, **facts)

    def _answer(self, request: Any) -> bool:
        self._question = request
        return True

    def run(self, task: dict[str, Any]) -> None:
        """Replay a task in a session of its own."""
        words = words_of(task)
        with agent_context(
            actor="agent:desk", session_id=f"s{task['id']}", user_text=words, interactive=True
        ):
            for name, given in calls_of(self._desk, task):
                self.writes += not name.startswith("get_")
                self._question = None
                try:
                    self._tools[name](**given)
                except ToolDenied as denied:
                    self.asked.append((name, given, str(denied)))
                    continue
                if self._question is not None:
                    self.asked.append((name, given, ", ".join(self._question.rule_refs)))


def words_of(task: dict[str, Any]) -> list[str]:
    """What the user of a task writes."""
    instructions = task["user_scenario"]["instructions"]
    keys = ("known_info", "reason_for_call", "task_instructions")
    return [str(instructions.get(key) or "") for key in keys]


def calls_of(desk: Desk, task: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls of a task, before each write its reads."""
    for action in task["evaluation_criteria"]["actions"] or []:
        name, given = action["name"], action["arguments"]
        if name not in vars(Desk):
            continue
        if not name.startswith("get_"):
            yield from _reads_before(desk, given)
        yield name, given


def _reads_before(desk: Desk, given: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    order = desk.data["orders"].get(given.get("order_id", ""))
    user = order["user_id"] if order else given.get("user_id", "")
    yield "get_user_details", {"user_id": user}
    if order:
        yield "get_order_details", {"order_id": order["order_id"]}
    for item in given.get("new_item_ids", ()):
        if item in desk.products:
            yield "get_product_details", {"product_id": desk.products[item]}


def desk_tools(desk: Desk) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """The tools of a desk: name, function and facts."""
    for name in vars(Desk):
        if not name.startswith("_"):
            yield name, getattr(desk, name), _READS if name.startswith("get_") else _WRITES


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--preset", default="assistant")
    parser.add_argument("--asked", action="store_true", help="print what is asked about")
    options = parser.parse_args(arguments)
    replay = Replay(options.data, options.preset)
    for task in json.loads((options.data / "tasks.json").read_text("utf-8")):
        replay.run(task)
    share = 100 * len(replay.asked) / replay.writes
    print(f"retail, {options.preset}: {replay.writes} honest writes, {share:.1f} % asked about")
    for rules, count in Counter(rules for _, _, rules in replay.asked).most_common():
        print(f"{count:4} {rules}")
    for name, given, rules in replay.asked if options.asked else ():
        print(f"{name} {given} {rules}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
