"""How much there may be of everything that a client can cause."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of a decision point.

    Attributes:
        body_bytes: bytes of a request's body.
        requests: requests that are worked on at once; further ones are refused at once.
        connections: open connections; beyond that the least useful one is closed.
        open_calls: calls that wait for an answer or a result.
        open_bytes: bytes of what was asked for in these calls.
        remembered: ended calls whose answer can be asked for again.
        sessions: sessions of clients.
        session_seconds: how long a session counts after its last call.
        wait_seconds: how long one request may wait for a person.
        result_seconds: how long a permitted call waits for its result; it is canceled then.
        stop_seconds: how long requests have to end when the process is stopped.
    """

    body_bytes: int = 4_000_000
    requests: int = 256
    connections: int = 512
    open_calls: int = 2_000
    open_bytes: int = 64_000_000
    remembered: int = 1_000
    sessions: int = 5_000
    session_seconds: float = 86_400.0
    wait_seconds: float = 60.0
    result_seconds: float = 3_600.0
    stop_seconds: int = 5
