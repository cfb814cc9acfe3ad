"""Blobs in S3, Google Cloud Storage or Azure Blob Storage, through obstore (the extra
``object-store``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError, PersistenceError
from agenttool_otel.results.stores.types import BlobInfo

_PART_BYTES: Final = 5 << 20  # the smallest part of an S3 multipart upload
# with the parts that fill meanwhile this bounds the memory of an upload
_CONCURRENT_PARTS: Final = 2


class ObjectStoreBackend:
    """Keeps blobs in an obstore store.

    Retention needs nothing of the cloud's own life-cycle rules, but works beside them. Who may read
    the bucket is the cloud's own matter: keep it private.
    """

    def __init__(self, store: Any, *, prefix: str = "", name: str = "", **options: Any) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            raise ConfigurationError(
                "object stores need the extra agenttool-otel[object-store]"
            ) from error
        self._obstore = obstore
        try:
            self._store = from_url(store, **options) if isinstance(store, str) else store
        except Exception as error:
            raise ConfigurationError(f"not an object store: {type(error).__name__}") from None
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self.name = name or type(self._store).__name__.removesuffix("Store").lower()

    def put(self, key: str, chunks: Iterable[bytes]) -> None:
        """Upload a blob; a multipart upload becomes visible when it is complete. See Backend."""
        failure: list[BaseException] = []
        try:
            self._obstore.put(
                self._store,
                self._prefix + key,
                _pieces(chunks, failure),
                chunk_size=_PART_BYTES,
                max_concurrency=_CONCURRENT_PARTS,
                use_multipart=True,
            )
        except Exception as error:
            if failure:
                # the producer's own exception, which the Rust side has wrapped
                raise failure[0] from error
            raise PersistenceError(f"can't write: {type(error).__name__}") from error

    def get(self, key: str, start: int, length: int) -> bytes:
        """Read a range of a blob; see Backend."""
        if (size := self.size(key)) is None:
            raise KeyError(key)
        end = min(start + length, size)
        if start >= end:
            return b""
        with _failing("read"):
            try:
                return bytes(
                    self._obstore.get_range(self._store, self._prefix + key, start=start, end=end)
                )
            except FileNotFoundError:
                raise KeyError(key) from None

    def size(self, key: str) -> int | None:
        """Return a blob's size; see Backend."""
        with _failing("look up"), suppress(FileNotFoundError):
            return int(self._obstore.head(self._store, self._prefix + key)["size"])
        return None

    def move(self, source: str, target: str) -> None:
        """Copy on the server and remove the source; see Backend."""
        with _failing("rename"):
            self._obstore.rename(self._store, self._prefix + source, self._prefix + target)

    def touch(self, key: str) -> None:
        """Object stores have no such operation: raise, so that the caller writes the object
        again.
        """
        raise PersistenceError("not supported")

    def delete(self, key: str) -> None:
        """Remove a blob; see Backend."""
        with _failing("delete"), suppress(FileNotFoundError):
            self._obstore.delete(self._store, self._prefix + key)

    def list(self, prefix: str) -> Iterator[BlobInfo]:
        """Yield the blobs under a prefix; see Backend."""
        with _failing("list"):
            for batch in self._obstore.list(self._store, prefix=self._prefix + prefix):
                for item in batch:
                    key = str(item["path"]).removeprefix(self._prefix)
                    yield BlobInfo(key, int(item["size"]), item["last_modified"].timestamp())

    def free_bytes(self) -> int | None:
        """Return ``None``: an object store has no such figure."""
        return None


def _pieces(chunks: Iterable[bytes], failure: list[BaseException]) -> Iterator[bytes]:
    """Yield the chunks that hold something, and keep the exception that ended them."""
    try:
        yield from (bytes(chunk) for chunk in chunks if chunk)
    except BaseException as error:
        failure.append(error)
        raise


@contextmanager
def _failing(action: str) -> Iterator[None]:
    try:
        yield
    except (PersistenceError, KeyError):
        raise
    except Exception as error:
        # Without the message: a client's error text holds URLs, and these hold signatures.
        raise PersistenceError(f"can't {action}: {type(error).__name__}") from error
