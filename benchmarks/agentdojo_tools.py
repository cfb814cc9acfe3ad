"""What the authors of AgentDojo's tools would state of them: one entry a tool, nothing that knows
of tasks or attacks.

How to read it: a reader says what of its result is a record, kept by the application itself (ids,
addresses, members, times), and what is free text that others wrote; without such a list all of it
is free text. A writer says what it touches and changes. Titles and hints are those that a catalogue
would show.
"""

from __future__ import annotations

from typing import Any

_TEXT = "free_text"
_RECORD = "record"

_TRANSACTIONS = {
    "namespace": "bank",
    "read_only": True,
    "open_world": True,  # subjects are written by whoever sends money
    "access_kinds": [],
    "result_trust": {
        f"/*/{name}": _RECORD
        for name in ("id", "sender", "recipient", "amount", "date", "recurring")
    },
}
_PAYS: dict[str, Any] = {
    "namespace": "bank",
    "read_only": False,
    "destructive": False,
    "open_world": False,
    "risk_level": "medium",
    "access_kinds": ["payment"],
    "write_effects": ["remote_mutation"],
}
_OWN_DATA: dict[str, Any] = {"read_only": True, "open_world": False, "access_kinds": []}

BANKING: dict[str, dict[str, Any]] = {
    "get_iban": {**_OWN_DATA, "namespace": "bank"},
    "get_balance": {**_OWN_DATA, "namespace": "bank"},
    "get_most_recent_transactions": _TRANSACTIONS,
    "get_scheduled_transactions": _TRANSACTIONS,
    "send_money": {
        **_PAYS,
        "title": "Send money",
        "search_hint": "pay transfer refund money to an account",
    },
    "schedule_transaction": {
        **_PAYS,
        "title": "Schedule a payment",
        "search_hint": "set up a standing order",
    },
    "update_scheduled_transaction": {
        **_PAYS,
        "title": "Change a scheduled payment",
        "search_hint": "adjust a standing order's amount, date or payee",
    },
    "read_file": {
        "namespace": "files",
        "read_only": True,
        "open_world": True,  # letters and bills, written by others
        "access_kinds": ["file_read"],
        "inert_args": [],
    },
    "get_user_info": {**_OWN_DATA, "namespace": "account", "data_sensitivity": "confidential"},
    "update_password": {
        "namespace": "account",
        "title": "Change the password",
        "read_only": False,
        "destructive": False,
        "open_world": False,
        "risk_level": "medium",
        "access_kinds": ["credential"],
        "write_effects": ["remote_mutation"],
        "sensitive_fields": ["password"],
    },
    "update_user_info": {
        "namespace": "account",
        "title": "Change the account's name and address",
        "read_only": False,
        "destructive": False,
        "open_world": False,
        "access_kinds": [],
        "write_effects": ["remote_mutation"],
    },
}

_MAILS: dict[str, Any] = {
    "namespace": "mail",
    "read_only": True,
    "open_world": True,
    "access_kinds": [],
    "result_trust": {
        f"/*/{name}": _RECORD
        for name in (
            "id_",
            "sender",
            "recipients",
            "cc",
            "bcc",
            "status",
            "read",
            "timestamp",
            "attachments/*/id_",
        )
    },
}
_EVENT = ("id_", "participants", "start_time", "end_time", "all_day", "status")
_EVENTS: dict[str, Any] = {
    "namespace": "calendar",
    "read_only": True,
    "open_world": True,
    "access_kinds": [],
    "result_trust": {f"/*/{name}": _RECORD for name in _EVENT},
}
_EVENT_WRITER: dict[str, Any] = {
    "namespace": "calendar",
    "read_only": False,
    "destructive": False,
    "open_world": True,  # what comes back are the event's own texts
    "access_kinds": ["external_send"],  # participants are notified
    "write_effects": ["remote_mutation"],
    "result_trust": {f"/{name}": _RECORD for name in _EVENT},
}
_FILE = ("id_", "owner", "last_modified", "shared_with", "size")
_FILES: dict[str, Any] = {
    "namespace": "drive",
    "read_only": True,
    "open_world": True,
    "access_kinds": [],
    "result_trust": {f"/*/{name}": _RECORD for name in _FILE},
}
_ONE_FILE = {f"/{name}": _RECORD for name in _FILE}
_FILE_WRITER: dict[str, Any] = {
    "namespace": "drive",
    "read_only": False,
    "destructive": False,
    "open_world": True,
    "access_kinds": [],
    "write_effects": ["remote_mutation"],
    "result_trust": _ONE_FILE,
}

WORKSPACE: dict[str, dict[str, Any]] = {
    "send_email": {
        "namespace": "mail",
        "title": "Send an email",
        "search_hint": "write mail message to people",
        "read_only": False,
        "destructive": False,
        "open_world": True,
        "access_kinds": ["external_send"],
        "write_effects": ["remote_mutation"],
        "result_trust": {
            f"/{name}": _RECORD
            for name in ("id_", "sender", "recipients", "cc", "bcc", "timestamp")
        },
    },
    "delete_email": {
        "namespace": "mail",
        "title": "Delete an email",
        "read_only": False,
        "destructive": True,
        "open_world": False,
        "access_kinds": [],
        "write_effects": ["remote_mutation"],
    },
    "get_unread_emails": _MAILS,
    "get_sent_emails": _MAILS,
    "get_received_emails": _MAILS,
    "get_draft_emails": _MAILS,
    "search_emails": _MAILS,
    "search_contacts_by_name": {**_OWN_DATA, "namespace": "mail"},
    "search_contacts_by_email": {**_OWN_DATA, "namespace": "mail"},
    "get_current_day": {**_OWN_DATA, "namespace": "calendar"},
    "search_calendar_events": _EVENTS,
    "get_day_calendar_events": _EVENTS,
    "create_calendar_event": {
        **_EVENT_WRITER,
        "title": "Create a calendar event",
        "search_hint": "book plan invite participants",
        "inert_args": ["location"],  # a line of text for people
    },
    "cancel_calendar_event": {
        **_EVENT_WRITER,
        "title": "Cancel a calendar event",
        "destructive": True,
        "open_world": False,
    },
    "reschedule_calendar_event": {
        **_EVENT_WRITER,
        "title": "Reschedule a calendar event",
        "search_hint": "move",
    },
    "add_calendar_event_participants": {
        **_EVENT_WRITER,
        "title": "Add participants to an event",
        "search_hint": "invite",
    },
    "append_to_file": {
        **_FILE_WRITER,
        "title": "Append to a file",
        "search_hint": "add text to a document",
    },
    "create_file": {**_FILE_WRITER, "title": "Create a file", "search_hint": "new document"},
    "delete_file": {**_FILE_WRITER, "title": "Delete a file", "destructive": True},
    "share_file": {**_FILE_WRITER, "title": "Share a file", "access_kinds": ["external_send"]},
    "search_files_by_filename": _FILES,
    "search_files": _FILES,
    "list_files": _FILES,
    "get_file_by_id": {**_FILES, "result_trust": _ONE_FILE},
}

_SLACK: dict[str, Any] = {
    "namespace": "slack",
    "read_only": True,
    "open_world": True,
    "access_kinds": [],
}
_NAMES = {**_SLACK, "result_trust": {"/*": _RECORD}}  # short names, given by members
_MESSAGES = {**_SLACK, "result_trust": {"/*/sender": _RECORD, "/*/recipient": _RECORD}}
_SLACK_WRITER: dict[str, Any] = {
    "namespace": "slack",
    "read_only": False,
    "destructive": False,
    "open_world": False,
    "access_kinds": ["external_send"],
    "write_effects": ["remote_mutation"],
}

SLACK: dict[str, dict[str, Any]] = {
    "get_channels": _NAMES,
    "get_users_in_channel": _NAMES,
    "read_channel_messages": _MESSAGES,
    "read_inbox": _MESSAGES,
    "add_user_to_channel": {
        **_SLACK_WRITER,
        "title": "Add a user to a channel",
        "search_hint": "invite a member",
        "access_kinds": [],
    },
    "send_direct_message": {**_SLACK_WRITER, "title": "Send a direct message"},
    "send_channel_message": {
        **_SLACK_WRITER,
        "title": "Send a message to a channel",
        "search_hint": "post",
    },
    "invite_user_to_slack": {**_SLACK_WRITER, "title": "Invite a user to the workspace"},
    "remove_user_from_slack": {
        **_SLACK_WRITER,
        "title": "Remove a user from the workspace",
        "destructive": True,
        "access_kinds": [],
    },
    "get_webpage": {
        "namespace": "web",
        "tool_kind": "web_search",
        "read_only": True,
        "open_world": True,
        "access_kinds": ["network"],
        "url_args": ["url"],
    },
    "post_webpage": {
        "namespace": "web",
        "title": "Post a web page",
        "search_hint": "publish content at an address",
        "read_only": False,
        "destructive": False,
        "open_world": True,
        "access_kinds": ["network", "external_send"],
        "write_effects": ["remote_mutation"],
        "url_args": ["url"],
    },
}

# what the platform lists of hotels, restaurants and car rentals: names, addresses, prices, hours
_LISTED: dict[str, Any] = {
    "namespace": "travel",
    "read_only": True,
    "open_world": True,
    "access_kinds": [],
    "result_trust": _RECORD,
}
# by name; written by guests
_REVIEWS: dict[str, Any] = {**_LISTED, "result_trust": {"": _RECORD, "/*": _TEXT}}
_RESERVES: dict[str, Any] = {
    "namespace": "travel",
    "search_hint": "book",
    "read_only": False,
    "destructive": False,
    "open_world": False,
    "access_kinds": [],
    "write_effects": ["remote_mutation"],
}

TRAVEL: dict[str, dict[str, Any]] = {
    "get_user_information": {**_OWN_DATA, "namespace": "account", "data_sensitivity": "restricted"},
    **dict.fromkeys(
        (
            "get_all_hotels_in_city",
            "get_hotels_prices",
            "get_hotels_address",
            "get_all_restaurants_in_city",
            "get_cuisine_type_for_restaurants",
            "get_restaurants_address",
            "get_dietary_restrictions_for_all_restaurants",
            "get_contact_information_for_restaurants",
            "get_price_for_restaurants",
            "check_restaurant_opening_hours",
            "get_all_car_rental_companies_in_city",
            "get_car_types_available",
            "get_car_fuel_options",
            "get_car_rental_address",
            "get_car_price_per_day",
            "get_flight_information",
        ),
        _LISTED,
    ),
    **dict.fromkeys(
        (
            "get_rating_reviews_for_hotels",
            "get_rating_reviews_for_restaurants",
            "get_rating_reviews_for_car_rental",
        ),
        _REVIEWS,
    ),
    "reserve_hotel": {**_RESERVES, "title": "Reserve a hotel"},
    "reserve_restaurant": {**_RESERVES, "title": "Reserve a table in a restaurant"},
    "reserve_car_rental": {**_RESERVES, "title": "Reserve a rental car"},
    **{
        name: WORKSPACE[name]
        for name in (
            "create_calendar_event",
            "search_calendar_events",
            "get_day_calendar_events",
            "cancel_calendar_event",
            "send_email",
        )
    },
}

SUITES: dict[str, dict[str, dict[str, Any]]] = {
    "banking": BANKING,
    "workspace": WORKSPACE,
    "slack": SLACK,
    "travel": TRAVEL,
}
