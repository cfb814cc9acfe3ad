"""What a coding agent's hook runs: hands the payload to the decision point, and prints its answer.

It is run by its path (``python -I -S client.py ...``), so that it imports nothing of this package,
and starts fast. Whatever goes wrong blocks the call: exit status 2, a reason on standard error, and
nothing on standard output.

client.py decide AGENT EVENT SOCKET [VARIABLE]
client.py record AGENT EVENT SOCKET [VARIABLE]

``decide`` is for the event before a call. ``record`` is for the events after: it always ends with 0,
since the call has run. VARIABLE is the environment variable with the project's folder.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    try:
        # what the modules without "_" import beside these costs half of this program's CPU time
        import _signal as signal
        import _socket as socket
    except ImportError:  # another Python than CPython
        import signal
        import socket

BLOCKED = 2
DEADLINE_SECONDS = 50  # the agent waits for 60, and then runs the call
MAX_PAYLOAD_BYTES = 4_000_000
MAX_ANSWER_BYTES = 1_000_000
_MEMBERS = {"exit": int, "stdout": str, "stderr": str}


class Failure(Exception):
    """There is no answer; the text is the reason that the agent is given."""


def main(arguments: list[str]) -> int:
    """Run the hook, and return its exit status.

    Args:
        arguments: the words of the command, as above.
    """
    if len(arguments) not in (4, 5) or arguments[0] not in ("decide", "record"):
        return _failed(True, "the hook's command is wrong: install it again")
    decides = arguments[0] == "decide"
    try:
        status, stdout, stderr = _answer(*arguments[1:])
    except Failure as failure:
        return _failed(decides, str(failure))
    except BaseException as error:  # MemoryError, KeyboardInterrupt: no call runs undecided
        return _failed(decides, type(error).__name__)
    if not decides:
        return 0
    _write(1, stdout)
    _write(2, stderr)
    return status


def _failed(decides: bool, reason: str) -> int:
    if not decides:
        return 0
    _write(2, f"agenttool decided nothing, so the call is blocked: {reason}\n")
    return BLOCKED


def _write(stream: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(stream, data) :]


def _answer(agent: str, event: str, path: str, variable: str = "") -> tuple[int, str, str]:
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)
    payload = _payload()
    project = os.environ.get(variable, "") if variable else ""
    query = "".join(f"%{byte:02X}" for byte in os.fsencode(project))
    head = (
        f"POST /v1/hooks/{agent}/{event}?project={query} HTTP/1.1\r\n"
        "Host: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(payload)}\r\n\r\n"
    )
    return _read(_exchange(path, head.encode("ascii") + payload))


def _late(*_: object) -> None:
    raise Failure("the decision point is too slow")


def _payload() -> bytes:
    payload = sys.stdin.buffer.read(MAX_PAYLOAD_BYTES + 1)
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise Failure("the call is too large")
    return payload


def _exchange(path: str, request: bytes) -> bytes:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
        _check_owner(connection)
        connection.sendall(request)
        answer = bytearray()
        while part := connection.recv(65_536):
            answer += part
            if len(answer) > MAX_ANSWER_BYTES:
                raise Failure("the answer is too large")
        return bytes(answer)
    except OSError as error:
        reason = "agenttool serve does not answer"
        raise Failure(f"{reason} ({type(error).__name__})") from None
    finally:
        connection.close()


def _check_owner(connection: socket.socket) -> None:
    """Refuse a decision point of another user."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    uid = int.from_bytes(found[4:8], sys.byteorder, signed=True)  # of pid, uid and gid
    if uid not in (os.geteuid(), 0):
        raise Failure("the socket is of another user")


def _read(answer: bytes) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of a well-formed answer."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if not blank or len(words) < 2 or not words[0].startswith("HTTP/1."):
        raise Failure("what answers is no decision point")
    lengths = [line.split(":", 1)[1] for line in lines[1:] if line.lower().startswith("content-le")]
    # a process that was killed while it answered
    if [length.strip() for length in lengths] != [str(len(body))]:
        raise Failure("the answer is cut off")
    answered = _as_serve_writes_it(body) if words[1] == "200" else None
    status, stdout, stderr = answered or _from_json(body, words[1])
    if status not in (0, BLOCKED) or (status == BLOCKED and not stderr):
        raise Failure("the answer has another form")
    return status, stdout, stderr


def _as_serve_writes_it(body: bytes) -> tuple[int, str, str] | None:
    """Return the members of ``{"exit":0,"stdout":"","stderr":""}``; ``None`` for any other text.

    The package json imports regular expressions, and its C module does not.
    """
    try:
        from _json import scanstring

        text = body.decode("utf-8")
        before, place = text[:20], 20
        if before[:8] != '{"exit":' or before[9:] != ',"stdout":"' or before[8] not in "02":
            return None
        stdout, place = scanstring(text, place, True)
        if text[place : place + 11] != ',"stderr":"':
            return None
        stderr, place = scanstring(text, place + 11, True)
    except (ImportError, ValueError):
        return None
    return (int(before[8]), stdout, stderr) if text[place:] == "}" else None


def _from_json(body: bytes, status: str) -> tuple[int, str, str]:
    import json

    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Failure("the answer can't be read") from None
    if status != "200":
        raise Failure(_problem(found, status))
    if not isinstance(found, dict) or {name: type(found[name]) for name in found} != _MEMBERS:
        raise Failure("the answer has another form")
    return found["exit"], found["stdout"], found["stderr"]


def _problem(found: object, status: str) -> str:
    detail = found.get("detail") if isinstance(found, dict) else None
    return f"status {status}: {detail}" if isinstance(detail, str) else f"status {status}"


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
