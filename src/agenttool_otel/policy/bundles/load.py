"""Loading a bundle from wherever it is: a directory, a ``.tar.gz`` file, or a web server
with ETags.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenttool_otel.errors import ConfigurationError, PolicyLoadError, PolicyUnavailable
from agenttool_otel.policy.bundles.bundle import MAX_BUNDLE_BYTES, Bundle, bundle_from_files
from agenttool_otel.policy.bundles.bundle_files import read_archive, read_directory
from agenttool_otel.policy.bundles.bundle_signature import BundleVerification, verify_signatures

Token = str | Callable[[], str | None] | None
"""A bearer token, or what gives the one of now."""


def is_url(source: str | Path) -> bool:
    """Return whether a bundle source is fetched over HTTP."""
    return isinstance(source, str) and source.startswith(("http://", "https://"))


@dataclass(slots=True)
class HttpFetch:
    """Fetches one bundle again and again, and only when it changed."""

    url: str  # where it is
    token: Token = field(default=None, repr=False)  # bearer token, if one is needed
    timeout: float = 30.0  # seconds that one fetch may take, the download included
    tls: ssl.SSLContext | None = None  # TLS settings; ``None``: the system's authorities
    etag: str | None = None  # ETag of the last bundle that was accepted

    def fetch(self) -> tuple[bytes, str | None] | None:
        """Fetch the archive: its bytes and ETag, or ``None`` when it is still the accepted one."""
        # most bundles are files, and an HTTP client is not imported for them
        from agenttool_otel.policy.http import Endpoint, HttpConnection

        endpoint, target = Endpoint.parse(self.url, tls=self.tls)
        headers = {
            "Accept": "application/gzip, application/vnd.openpolicyagent.bundles",
            "Connection": "close",
        }
        token = self.token() if callable(self.token) else self.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self.etag:
            headers["If-None-Match"] = self.etag
        connection = HttpConnection(endpoint, limit=MAX_BUNDLE_BYTES)
        try:
            answer = connection.request(
                "GET", target, None, headers, deadline=time.monotonic() + self.timeout
            )
        except PolicyUnavailable as error:
            raise PolicyLoadError(
                f"{endpoint}: the bundle can't be fetched: {error}", cause=error.cause
            ) from None
        except Exception as error:
            raise PolicyLoadError(f"{endpoint}: the bundle can't be fetched: {error}") from None
        finally:
            connection.close()
        if answer.status == 304 and self.etag:
            return None
        if answer.status != 200:
            raise PolicyLoadError(
                f"{endpoint}: the bundle server answered with status {answer.status}"
            )
        return answer.body, answer.headers.get("etag")


def load_bundle(
    source: str | Path,
    *,
    verification: BundleVerification | None = None,
    token: Token = None,
    **fetch: Any,
) -> Bundle:
    """Load a bundle.

    Args:
        source: a directory, a ``.tar.gz`` file, or an ``http(s)`` URL of one. The path of a single
            ``.rego`` file is a bundle of that file.
        verification: keys, when the bundle must be signed.
        token: bearer token for a URL, or what gives it.
        fetch: ``timeout`` (seconds) and ``tls`` (SSLContext) for a URL.

    Raises:
        PolicyLoadError: missing, empty, broken, wrongly signed or too large; the message names file
          and line.
    """
    if is_url(source):
        if (fetched := HttpFetch(str(source), token=token, **fetch).fetch()) is None:
            raise PolicyLoadError(f"{source}: the server gave no bundle")
        return bundle_of_archive(fetched[0], origin=str(source), verification=verification)
    if not isinstance(source, (str, Path)):
        raise ConfigurationError("a bundle is named by a path or a URL")
    path = Path(source)
    if path.is_dir():
        files = read_directory(path)
    elif path.is_file():
        if path.stat().st_size > MAX_BUNDLE_BYTES:
            raise PolicyLoadError(f"{path}: more than {MAX_BUNDLE_BYTES} bytes")
        try:
            content = path.read_bytes()
        except OSError as error:
            raise PolicyLoadError(f"{path}: {error.strerror or error}") from None
        if path.suffix != ".rego":
            return bundle_of_archive(content, origin=str(path), verification=verification)
        files = {path.name: content}
    else:
        raise PolicyLoadError(f"policy bundle {path} does not exist")
    verified = verify_signatures(files, verification, origin=str(path))
    return bundle_from_files(files, origin=str(path), verified=verified)


def bundle_of_archive(
    content: bytes, *, origin: str, verification: BundleVerification | None = None
) -> Bundle:
    """Make a bundle of a ``.tar.gz`` in memory."""
    files = read_archive(content, origin=origin)
    verified = verify_signatures(files, verification, origin=origin)
    return bundle_from_files(files, origin=origin, verified=verified)
