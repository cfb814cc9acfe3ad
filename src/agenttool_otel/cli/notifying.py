"""What ``agenttool approvals notify`` is made of: its plan, its secrets, and how long it runs."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from agenttool_otel.approvals.notify.notifier import BATCH_SECONDS, Notifier
from agenttool_otel.approvals.notify.notifier import only_one as only_one
from agenttool_otel.approvals.notify.signatures import Signer
from agenttool_otel.approvals.notify.targets import Format, Plan, Target, read_plan, read_span
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import Env
from agenttool_otel.values.addresses import is_loopback


def plan_of(to: str, format: str, remind: str, config: Path | None, page: str) -> Plan:
    """Return what is sent where.

    Args:
        to: the only target's address, where no file is given.
        format: its format.
        remind: after how long it is reminded.
        config: a file with targets.
        page: address of the approvals page.

    Raises:
        ConfigurationError: it is neither an address nor a file, or both, or one that can't be used.
    """
    if bool(to) is (config is not None):
        raise ConfigurationError("give either --to or --config")
    if config is not None:
        return read_plan(config, page)
    if format not in set(Format):
        raise ConfigurationError(f"there is no format {format[:40]}: {', '.join(Format)}")
    target = Target("notices", to, Format(format), remind=read_span(remind))
    return Plan((target,), page.rstrip("/"))


def answers_address(host: str, port: int | None, public_url: str) -> tuple[str, int] | None:
    """Return where answers are taken; ``None``: nowhere.

    Args:
        host: the address to listen on.
        port: the port; ``None``: none.
        public_url: https address of the TLS proxy in front.

    Raises:
        ConfigurationError: an address beyond this machine without a TLS proxy.
    """
    if port is None:
        return None
    if public_url and not (public_url.startswith("https://") and urlsplit(public_url).hostname):
        raise ConfigurationError("the public address of answers must start with https://")
    # an answer names a person and why: in clear, who listens reads it
    if not public_url and not is_loopback(host):
        raise ConfigurationError(
            "answers are for this machine only; elsewhere they need a TLS proxy and --answers-public-url"
        )
    return host, port


def notifier_of(store: ApprovalStore, plan: Plan, state: Path, *, takes_answers: bool) -> Notifier:
    """Return the notifier of a plan.

    Args:
        store: the store.
        plan: what is sent where.
        state: the file of what was sent.
        takes_answers: whether answers are taken.

    Raises:
        ConfigurationError: a secret is missing or can't be used, or both are one.
    """
    signer, tickets = _signer_of(Env.APPROVALS_NOTIFY), None
    if any(target.format is Format.CLOUDEVENTS for target in plan.targets) and signer is None:
        raise ConfigurationError(f"CloudEvents are signed: set {Env.APPROVALS_NOTIFY}")
    if takes_answers:
        tickets = _signer_of(Env.APPROVALS_ANSWERS)
        if tickets is None:
            raise ConfigurationError(f"answers are signed: set {Env.APPROVALS_ANSWERS}")
        # who reads what is sent could answer
        if signer is not None and tickets.has_key_of(signer):
            raise ConfigurationError(
                f"{Env.APPROVALS_ANSWERS} has to be another secret than {Env.APPROVALS_NOTIFY}"
            )
    return Notifier(store, plan, state, signer, tickets)


def _signer_of(variable: str) -> Signer | None:
    secret = os.environ.get(variable, "")
    return Signer(secret) if secret else None


def look_once(notifier: Notifier) -> int:
    """Send what is due, and return how many messages arrived.

    Args:
        notifier: what sends.
    """
    return notifier.look(BATCH_SECONDS)


def run(
    notifier: Notifier,
    interval: float,
    *,
    address: tuple[str, int] | None,
    roles: tuple[str, ...],
    on_rejected: Callable[[str], None],
) -> None:
    """Send notices until interrupted, and take answers where an address is given.

    Args:
        notifier: what sends.
        interval: seconds between two looks.
        address: host and port for answers.
        roles: roles that an answer may state.
        on_rejected: called with the id of each request that is rejected.

    Raises:
        OSError: the address can't be used.
    """
    stop = threading.Event()
    if address is None:
        with contextlib.suppress(KeyboardInterrupt):
            notifier.run(interval, stop.wait)
        return
    # needs the extra web
    from agenttool_otel.approvals.notify.answering import AnswersEndpoint, answers_server

    if notifier.tickets is None:
        raise ConfigurationError("answers need a secret")
    endpoint = AnswersEndpoint(
        notifier.store, notifier.tickets, roles=roles, on_rejected=on_rejected
    )
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.create_server(address, family=family) as listening:
        sys.stderr.write(f"answers are taken on port {listening.getsockname()[1]}\n")
        thread = threading.Thread(
            target=notifier.run, args=(interval, stop.wait), name="agenttool-notices", daemon=True
        )
        thread.start()
        try:
            with contextlib.suppress(KeyboardInterrupt):
                answers_server(endpoint).run(sockets=[listening])
        finally:
            stop.set()
            thread.join(interval + 10)
