"""The desks of tau2 over their data: tools that give what the data hold, and what an agent reads before a
write. A write gives what it concerns as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.judged import Step

_Cabin = Literal["business", "economy", "basic_economy"]
_Reason = Literal["no longer needed", "ordered by mistake"]


class Desk:
    """A desk's tools over its data, and what is read before a write."""

    readers: tuple[str, ...] = ("get_", "search_")
    """How the names of tools that only read begin."""

    def __init__(self, folder: Path) -> None:
        self.data = json.loads((folder / "db.json").read_text("utf-8"))

    @classmethod
    def reads(cls, name: str) -> bool:
        """Return whether a tool only reads."""
        return name.startswith(cls.readers)

    def tools(self) -> dict[str, Callable[..., Any]]:
        """Return the tools that a model sees, by name."""
        own = ("get_user_details", *vars(type(self)))
        return {name: getattr(self, name) for name in own if not name.startswith("_")}

    def _first(self, given: dict[str, Any]) -> Iterator[Step]:
        """Yield the reads before a write."""
        raise NotImplementedError

    def before(self, given: dict[str, Any]) -> list[Step]:
        """Return the reads that an agent makes before a write, as the desk's policy has it.

        Args:
            given: the write's arguments.
        """
        return list(self._first(given))

    def get_user_details(self, user_id: str) -> Any:
        """Get the details of a user."""
        return self.data["users"].get(user_id, "no such user")


def _read(tool: str, **args: Any) -> Step:
    return Step(tool, args, honest=True)


class Retail(Desk):
    """The shop's desk."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._products = {
            item: product["product_id"]
            for product in self.data["products"].values()
            for item in product["variants"]
        }

    def _first(self, given: dict[str, Any]) -> Iterator[Step]:
        order = self.data["orders"].get(given.get("order_id", ""))
        yield _read("get_user_details", user_id=(order or given).get("user_id", ""))
        if order:
            yield _read("get_order_details", order_id=order["order_id"])
        for item in given.get("new_item_ids", ()):
            if item in self._products:
                yield _read("get_product_details", product_id=self._products[item])

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


class Airline(Desk):
    """The airline's desk."""

    def _first(self, given: dict[str, Any]) -> Iterator[Step]:
        reservation = self.data["reservations"].get(given.get("reservation_id", ""))
        yield _read("get_user_details", user_id=(reservation or given).get("user_id", ""))
        if reservation:
            yield _read("get_reservation_details", reservation_id=given["reservation_id"])
        for wanted in given.get("flights", ()):
            flight = self.data["flights"].get(wanted["flight_number"])
            if flight:
                places = {"origin": flight["origin"], "destination": flight["destination"]}
                yield _read("search_direct_flight", **places, date=wanted["date"])

    def get_reservation_details(self, reservation_id: str) -> Any:
        """Get the details of a reservation."""
        return self.data["reservations"].get(reservation_id, "no such reservation")

    def search_direct_flight(self, origin: str, destination: str, date: str) -> Any:
        """Search for direct flights between two cities on a specific date."""
        places = (origin, destination)
        return [
            {
                **{key: value for key, value in flight.items() if key != "dates"},
                **flight["dates"][date],
            }
            for flight in self.data["flights"].values()
            if (flight["origin"], flight["destination"]) == places and date in flight["dates"]
        ]

    def cancel_reservation(self, reservation_id: str) -> Any:
        """Cancel the whole reservation."""
        return self.get_reservation_details(reservation_id)

    def update_reservation_flights(
        self, reservation_id: str, cabin: _Cabin, flights: list[dict[str, str]], payment_id: str
    ) -> Any:
        """Update the flight information of a reservation."""
        return self.get_reservation_details(reservation_id)

    def update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Any:
        """Update the baggage information of a reservation."""
        return self.get_reservation_details(reservation_id)

    def update_reservation_passengers(
        self, reservation_id: str, passengers: list[dict[str, str]]
    ) -> Any:
        """Update the passenger information of a reservation."""
        return self.get_reservation_details(reservation_id)

    def send_certificate(self, user_id: str, amount: int) -> Any:
        """Send a certificate to a user. Be careful!"""
        return self.get_user_details(user_id)

    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: Literal["one_way", "round_trip"],
        cabin: _Cabin,
        flights: list[dict[str, str]],
        passengers: list[dict[str, str]],
        payment_methods: list[dict[str, Any]],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: Literal["yes", "no"],
    ) -> Any:
        """Book a reservation."""
        return self.get_user_details(user_id)


DESKS: Final[dict[str, type[Desk]]] = {"retail": Retail, "airline": Airline}
"""By the name of a domain."""
