"""Serve this package as a subject: ``python -m agenttool_otel.conformance``."""

from __future__ import annotations

import json
import sys
from typing import IO, Any, Final

from agenttool_otel.conformance.own import OwnSubject
from agenttool_otel.conformance.process import NOT_IMPLEMENTED
from agenttool_otel.records.base import JsonObject

_FAILED: Final = -32603


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer requests until there are no more.

    Args:
        requests: one JSON-RPC request a line.
        replies: gets one reply a line.
    """
    subject = OwnSubject()
    for line in requests:
        message = json.loads(line)
        reply = {"jsonrpc": "2.0", "id": message["id"], **_answer(subject, message)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    subject.close()


def _answer(subject: OwnSubject, message: JsonObject) -> dict[str, Any]:
    # whatever goes wrong is the answer: the runner reports it
    try:
        return {"result": subject.request(message["method"], message["params"])}
    except NotImplementedError as error:
        return {"error": {"code": NOT_IMPLEMENTED, "message": str(error)}}
    except Exception as error:
        return {"error": {"code": _FAILED, "message": f"{type(error).__name__}: {error}"}}


def main() -> None:
    """Serve standard input; what anything else prints goes to standard error."""
    replies = sys.stdout
    sys.stdout = sys.stderr
    serve(sys.stdin, replies)


if __name__ == "__main__":
    main()
