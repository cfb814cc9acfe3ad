"""A support agent's conversations: nine customers, each with texts, ids and questions of their own.

Each line is one call as a model made it, in order: the tool, then its arguments. Nothing but the
tools' own facts repeats between conversations, and every text is different, so that a decision is
found again only where its rules do not depend on the text.
"""

from __future__ import annotations

from typing import Any

_TEXT = """
customer email=ada.lopez@example.com
orders customer_id=C-20418
order order_id=O-771203
search query=parcel shows delivered but the customer says it is not there
search query=how long do we wait before a lost parcel is replaced
note order_id=O-771203 text=Customer checked with both neighbours and the caretaker, nothing found. Wants a replacement.
search query=replacement for lost items above 100 euros, who approves
note order_id=O-771203 text=Replacement agreed, carrier claim opened on the same day.
reply customer_id=C-20418 text=Hello Ada, we are sending the kettle again today and will handle the claim ourselves.

customer email=j.okafor@example.org
orders customer_id=C-98122
search query=refund to an expired credit card
order order_id=O-443019
note order_id=O-443019 text=Card ending in 11 has expired. Customer would rather have a voucher.
search query=voucher instead of refund, is there a bonus
reply customer_id=C-98122 text=Hi Jude, a voucher over 84.50 is on its way, it is valid for three years.
note order_id=O-443019 text=Voucher issued, no bonus because the order was paid with a gift card.

customer email=mai.tran@example.net
search query=app crashes when opening the invoice list on Android 12
search query=known problems of release 8.4.1
orders customer_id=C-55731
order order_id=O-128840
note order_id=O-128840 text=Crash happens right after login, only with the dark theme. Steps sent to the app team.
search query=can an invoice be sent by mail without the app
reply customer_id=C-55731 text=Dear Mai, your invoice is attached to a separate message; the crash is fixed in 8.4.2.

customer email=petra.novak@example.com
orders customer_id=C-31377
order order_id=O-660125
order order_id=O-660126
search query=two orders with one delivery, how are shipping costs shared
search query=return only one of two items of a bundle
note order_id=O-660125 text=Wants to keep the lamp and return the shade; the bundle price has to be split by list price.
reply customer_id=C-31377 text=Hello Petra, please send only the shade back, the label is in your account now.
note order_id=O-660126 text=Return label made; refund is 19.20 after the split.

customer email=samir.h@example.org
search query=change the delivery address after the order was shipped
orders customer_id=C-70284
order order_id=O-905517
search query=carrier redirect, cut-off time, cost for the customer
note order_id=O-905517 text=Moved last week. New flat is in the same town, redirect is possible until 18:00.
search query=does the redirect need an identity check
reply customer_id=C-70284 text=Hi Samir, the parcel now goes to your new flat, tomorrow between 9 and 12.

customer email=lena.brandt@example.com
search query=subscription renewed although it was cancelled
orders customer_id=C-11960
order order_id=O-300871
search query=grace period for renewals, where is the cancellation logged
note order_id=O-300871 text=Cancellation mail from the 3rd is in the archive, filed as a question about prices.
search query=who may refund a yearly plan in full
note order_id=O-300871 text=Full refund approved by the team lead on the phone.
reply customer_id=C-11960 text=Hello Lena, you were right: the year is refunded and the plan is closed.

customer email=kofi.mensah@example.net
orders customer_id=C-64209
order order_id=O-517744
search query=warranty for a grinder used in a small cafe
search query=commercial use and consumer warranty, difference
note order_id=O-517744 text=Grinder stops after two minutes, motor gets hot. About forty coffees a day.
search query=repair partner for grinders near the customer, turnaround
reply customer_id=C-64209 text=Dear Kofi, the workshop collects the grinder on Monday and lends you another one.
note order_id=O-517744 text=Loan device 0093 sent, collection booked.

customer email=yuki.sato@example.org
search query=allergens of the nut-free granola, traces
search query=batch recall 2231 granola
orders customer_id=C-48015
order order_id=O-289946
note order_id=O-289946 text=Batch number on the bag is 2229, not part of the recall. Customer is worried about her son.
search query=what may support say about allergens, wording
reply customer_id=C-48015 text=Hello Yuki, your bag is not part of the recall; its lab report is in your account.

customer email=tom.ferreira@example.com
orders customer_id=C-83350
order order_id=O-754408
search query=price was lowered one day after the purchase
search query=price protection, which categories are excluded
note order_id=O-754408 text=Bought the monitor on Sunday, 60 less on Monday. Within the seven days.
search query=how to book a price difference without touching the invoice
reply customer_id=C-83350 text=Hi Tom, we refund the difference of 60 to your account within two days.
note order_id=O-754408 text=Difference booked as goodwill, code G7.
"""


def conversations() -> list[list[tuple[str, dict[str, Any]]]]:
    """The calls of each conversation: the tool's name, its arguments."""
    return [[_call(line) for line in block.splitlines()] for block in _TEXT.strip().split("\n\n")]


def _call(line: str) -> tuple[str, dict[str, Any]]:
    tool, first = line.split(" ", 1)
    arguments: dict[str, Any] = {}
    if " text=" in first:
        first, arguments["text"] = first.split(" text=", 1)
    name, value = first.split("=", 1)
    return tool, {name: value, **arguments}
