"""Rehearsals: layers are opened, sealed, kept, committed and swept."""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from agenttool_otel.enforcement.rehearsal.attempts import Attempts
from agenttool_otel.enforcement.rehearsal.commit import Commit
from agenttool_otel.enforcement.rehearsal.failures import (
    CommitRefused,
    LayerBusy,
    RehearsalError,
    RehearsalUnavailable,
    UnknownLayer,
)
from agenttool_otel.enforcement.rehearsal.manifest import Manifest, manifest_from
from agenttool_otel.enforcement.rehearsal.masks import (
    secrets_of_home,
    secrets_of_system,
    unix_sockets,
)
from agenttool_otel.enforcement.rehearsal.noise import is_noise
from agenttool_otel.enforcement.rehearsal.orphans import end_sandboxes
from agenttool_otel.enforcement.rehearsal.sandbox import (
    PRIVATE,
    Command,
    Overlay,
    Sandbox,
    bubblewrap,
    kept_environment,
    mounts_below,
    run,
)
from agenttool_otel.enforcement.rehearsal.scan import LayerTooLarge, Scan
from agenttool_otel.enforcement.rehearsal.state import (
    StateDirectory,
    read_document,
    write_document,
)
from agenttool_otel.enforcement.rehearsal.types import (
    Committed,
    Effects,
    RehearsedRun,
    Swept,
)
from agenttool_otel.enforcement.secrets import SecretsUnknown, SecretWalk
from agenttool_otel.values.forks import new_lock
from agenttool_otel.values.process_identity import is_dead, this_process

KEEP_SECONDS: Final = 86_400.0
CHANGES_LIMIT: Final = 20_000
OUTPUT_LIMIT: Final = 1 << 20
_HOST_SECONDS: Final = 60.0
_MASKS_LIMIT: Final = 2_000
_LAYER = "layer.json"
_SEALED = "sealed.json"
_COMMIT = "commit.json"
_RESULT = "result.json"


class Rehearsals:
    """The layers of one state directory.

    Args:
        directory: where layers, locks and journals are; made with mode 0700. On the file system of
            the roots a commit renames files, elsewhere it copies them. It must not lie in a root.
        keep_seconds: how long a sealed layer waits for its commit.
        changes_limit: most paths that a layer may touch, those of deleted trees counted; beyond,
            its effects are incomplete.

    Raises:
        RehearsalUnavailable: the directory can't be used.
    """

    def __init__(
        self,
        directory: Path,
        *,
        keep_seconds: float = KEEP_SECONDS,
        changes_limit: int = CHANGES_LIMIT,
    ) -> None:
        self._state = StateDirectory(directory)
        self._keep_seconds = keep_seconds
        self._changes_limit = changes_limit
        self._walk = SecretWalk()
        self._host: tuple[float, tuple[str, ...]] = (-_HOST_SECONDS, ())

    def open(
        self,
        roots: Sequence[Path],
        *,
        masked: Sequence[Path] = (),
        places: Sequence[Path] | None = None,
    ) -> OpenLayer:
        """Open a layer over directories.

        Args:
            roots: the directories that commands may write into, as far as they see.
            masked: files and directories that commands must not read, beside the secrets of this
                host.
            places: home directories whose keys and credentials are masked; this user's where
                ``None``.

        Raises:
            RehearsalUnavailable: this host or a root can't have a rehearsal.
        """
        bubblewrap()
        lowers = _resolved(roots)
        self._check_roots(lowers)
        secrets = self._secrets(lowers, masked, places)
        path, lock = self._state.new_layer()
        try:
            overlays = tuple(_overlay(path, index, lower) for index, lower in enumerate(lowers))
            # the time of the file system, whose clock is not that of time.time
            opened_ns = os.stat(path / "lock").st_ctime_ns
            document = {
                "roots": lowers,
                "inodes": [os.lstat(lower).st_ino for lower in lowers],
                "opened_ns": opened_ns,
                "opener": this_process(),
                "masked": sorted(secrets),
            }
            write_document(path / _LAYER, document)
            sandbox = _sandbox(overlays, secrets, lock)
            return OpenLayer(self._state, path, sandbox, document, self._limits)
        except BaseException:
            self._state.remove(path)
            os.close(lock)
            raise

    def check(self, roots: Sequence[Path]) -> None:
        """Look whether there can be a layer over directories, and make none.

        Args:
            roots: the directories.

        Raises:
            RehearsalUnavailable: a root can't have a rehearsal.
        """
        self._check_roots(_resolved(roots))

    def kept(self, layer_id: str) -> SealedLayer:
        """Return a sealed layer, which another process may have sealed.

        Args:
            layer_id: its id.

        Raises:
            UnknownLayer: it was committed or discarded, has expired, or never was.
        """
        layer = _sealed_at(self._state, self._state.layer(layer_id))
        if layer is None or layer.expires_at <= time.time():
            raise UnknownLayer(f"there is no layer {layer_id}")
        return layer

    def layers(self) -> Iterator[SealedLayer]:
        """Yield the sealed layers that have not expired, oldest first."""
        for layer_id in self._state.layer_ids():
            try:
                yield self.kept(layer_id)
            except UnknownLayer:
                continue

    def sweep(self) -> Swept:
        """Finish commits that were begun, and remove layers that were abandoned or have expired.

        What another process works on is left alone, and nothing but layers is removed.
        """
        finished: list[str] = []
        half: list[Committed] = []
        removed: list[str] = []
        busy: list[str] = []
        for layer_id in self._state.layer_ids():
            try:
                self._end_orphans(layer_id)
                with self._state.holding(layer_id) as path:
                    self._sweep_layer(path, finished, half, removed)
            except LayerBusy:
                busy.append(layer_id)
            except UnknownLayer:
                continue
        with self._state.alone():
            self._state.empty_trash()
        return Swept(tuple(finished), tuple(half), tuple(removed), tuple(busy))

    def _end_orphans(self, layer_id: str) -> None:
        """End the sandbox of a layer whose opener has ended; until then it holds the layer's lock."""
        path = self._state.layer(layer_id)
        document = read_document(path / _LAYER)
        if document is None or (path / _SEALED).exists() or not is_dead(document["opener"]):
            return
        with suppress(FileNotFoundError):  # another sweep was here first
            end_sandboxes(os.stat(path / "lock"))

    def _sweep_layer(
        self, path: Path, finished: list[str], half: list[Committed], removed: list[str]
    ) -> None:
        sealed = _sealed_at(self._state, path)
        expired = sealed is None or sealed.expires_at <= time.time()
        if sealed is None or not (path / _COMMIT).exists():
            if expired:
                self._state.remove(path)
                removed.append(path.name)
            return
        committed = sealed.finish_commit(path)
        if committed.whole:
            finished.append(path.name)
            return
        half.append(committed)
        if expired:
            self._state.remove(path)
            removed.append(path.name)

    @property
    def _limits(self) -> tuple[int, float]:
        return self._changes_limit, self._keep_seconds

    def _check_roots(self, lowers: Sequence[str]) -> None:
        state = os.fspath(self._state.path)
        for lower in lowers:
            if _is_inside(state, lower) or _is_inside(lower, state):
                raise RehearsalUnavailable(f"the state directory {state} and {lower} overlap")
            if lower in ("/", *PRIVATE, "/proc", "/dev", "/sys"):
                raise RehearsalUnavailable(f"there can't be a layer over {lower}")
            _check_owner(lower)
            for place in mounts_below(lower):
                if place not in lowers:
                    raise RehearsalUnavailable(
                        f"{place} is mounted below {lower}: name it as a root"
                    )

    def _secrets(
        self, lowers: Sequence[str], masked: Sequence[Path], places: Sequence[Path] | None
    ) -> frozenset[str]:
        found = {os.path.realpath(path) for path in masked}
        found.add(os.fspath(self._state.path))
        found.update(self._secrets_of_host(places))
        found.update(os.path.realpath(path) for path in unix_sockets())
        for lower in lowers:
            found.update(self._secrets_below(lower, [other for other in lowers if other != lower]))
        return frozenset(path for path in found if _is_reachable(path, lowers))

    def _secrets_below(self, lower: str, others: Sequence[str]) -> list[str]:
        try:
            return list(self._walk.below(lower, others, for_overlay=True))
        except SecretsUnknown as error:
            raise RehearsalUnavailable(str(error)) from error

    def _secrets_of_host(self, places: Sequence[Path] | None) -> tuple[str, ...]:
        if places is not None:
            return tuple(_secrets_of(places))
        looked_at, found = self._host
        if time.monotonic() - looked_at > _HOST_SECONDS:
            homes = {Path.home(), Path(os.path.expanduser(f"~{_user()}"))}
            found = tuple(_secrets_of(sorted(homes)))
            self._host = (time.monotonic(), found)
        return found


class OpenLayer:
    """A layer into which commands are run; as a context manager, it discards what is not finished.

    Attributes:
        id: the layer's id.
        roots: the directories under it, resolved.
        masked: what commands can't read.
    """

    def __init__(
        self,
        state: StateDirectory,
        path: Path,
        sandbox: Sandbox,
        document: dict[str, Any],
        limits: tuple[int, float],
    ) -> None:
        self.id = path.name
        self.roots = tuple(document["roots"])
        self.masked = frozenset(document["masked"])
        self._state = state
        self._path = path
        self._sandbox = sandbox
        self._document = document
        self._changes_limit, self._keep_seconds = limits
        self._attempts = Attempts([*PRIVATE, "/dev/shm", *self.roots])  # noqa: S108
        self._counted = True
        self._open = True
        self._stopped = False
        self._stop_command: Callable[[], None] = lambda: None
        self._running = new_lock()

    def __enter__(self) -> OpenLayer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        input: bytes | None = None,
        timeout: float | None = None,
        output_limit: int = OUTPUT_LIMIT,
    ) -> RehearsedRun:
        """Run a command in the layer; a later one sees what an earlier one wrote.

        Args:
            argv: the program and its arguments.
            cwd: where it runs.
            env: its environment; a few variables of this process' where ``None``.
            input: what it reads; nothing where ``None``.
            timeout: seconds until it is killed with all that it started.
            output_limit: bytes that are kept of each output.

        Raises:
            RehearsalUnavailable: the sandbox could not be made; nothing ran.
            RehearsalError: the layer is sealed or discarded.
        """
        command = Command(
            argv=[os.fspath(word) for word in argv],
            cwd=os.path.realpath(cwd),
            environment=kept_environment() if env is None else env,
            input=input,
            timeout=timeout,
            output_limit=output_limit,
        )
        # two at once would be two overlays over one directory, which the kernel leaves undefined
        with self._running:
            self._check_open()
            if self._stopped:
                raise RehearsalError("no command may run on the layer any more")
            ended, counted = run(self._sandbox, command, self._attempts, self._stoppable)
        self._counted = self._counted and counted
        return ended

    def stop(self) -> None:
        """Kill the command that runs, and let no other one run; the layer can be sealed or discarded."""
        self._stopped = True
        self._stop_command()

    def _stoppable(self, stop: Callable[[], None]) -> None:
        self._stop_command = stop
        if self._stopped:
            stop()

    def finish(self) -> SealedLayer:
        """Seal the layer: find its effects, and let nothing be written into it any more.

        Raises:
            RehearsalError: the layer is sealed or discarded.
        """
        with self._running:
            self._check_open()
            self._open = False
        manifest = self._manifest()
        document = {
            "manifest": manifest.document(),
            "digest": manifest.digest(),
            "inodes": self._document["inodes"],
            "sealed_at": time.time(),
            "expires_at": time.time() + self._keep_seconds,
        }
        write_document(self._path / _SEALED, document)
        os.close(self._sandbox.lock)
        return SealedLayer(self._state, self._path, document)

    def discard(self) -> None:
        """Throw the layer away; a sealed one stays."""
        with self._running:
            if not self._open:
                return
            self._open = False
        self._state.remove(self._path)
        os.close(self._sandbox.lock)

    def _check_open(self) -> None:
        if not self._open:
            raise RehearsalError("the layer is sealed or discarded")

    def _manifest(self) -> Manifest:
        scan = Scan(self._document["opened_ns"], self._changes_limit, self.masked)
        try:
            for index, overlay in enumerate(self._sandbox.overlays):
                scan.add_root(index, overlay.root, overlay.upper)
        except LayerTooLarge:
            scan.reasons.append(f"more than {self._changes_limit:,} paths are touched")
        except OSError as error:
            scan.reasons.append(f"the layer could not be read: {error}")
        manifest = Manifest(
            roots=self.roots,
            entries=tuple(scan.entries),
            connections=tuple(
                attempt for attempt in self._attempts.connections() if not is_noise(attempt.host)
            ),
            reasons=tuple(scan.reasons),
            connections_counted=self._counted,
        )
        noise = {path for path in map(manifest.path, manifest.entries) if is_noise(path)}
        return replace(manifest, noise=frozenset(noise))


class SealedLayer:
    """A layer whose effects are known; it is committed once, or thrown away.

    Attributes:
        id: the layer's id.
        effects: what it would change.
        digest: SHA-256 over effects and contents; a commit has to name it.
        sealed_at: seconds since the epoch.
        expires_at: seconds since the epoch, from which on it is removed.
    """

    def __init__(self, state: StateDirectory, path: Path, document: dict[str, Any]) -> None:
        self.id = path.name
        self.manifest = manifest_from(document["manifest"])
        self.effects: Effects = self.manifest.effects()
        self.digest = self.manifest.digest()
        self.sealed_at: float = document["sealed_at"]
        self.expires_at: float = document["expires_at"]
        self._stored_digest: str = document["digest"]
        self._inodes = tuple(document["inodes"])
        self._state = state
        self._path = path

    def commit(self, digest: str) -> Committed:
        """Put the changes into the roots, once.

        Args:
            digest: the digest of what was decided on.

        Raises:
            CommitRefused: another digest, incomplete effects, or another content than was sealed.
            CommitConflict: the roots have changed where the layer changes them.
            UnknownLayer: it was committed or discarded, or has expired.
            LayerBusy: another process commits or discards it.
        """
        with self._state.holding(self.id) as path:
            self._check_word(path, digest)
            commit = self._commit(path)
            commit.check()
            # contents first: the journal must not name what a power failure could take
            _sync(path)
            write_document(path / _COMMIT, {"digest": digest})
            return self.finish_commit(path)

    def discard(self) -> None:
        """Throw the layer away; nothing is left to be done if it is gone.

        Raises:
            LayerBusy: another process commits or discards it.
            CommitRefused: its commit has begun.
        """
        try:
            with self._state.holding(self.id) as path:
                if (path / _COMMIT).exists():
                    raise CommitRefused("its commit has begun; sweep() finishes it")
                self._state.remove(path)
        except UnknownLayer:
            return

    def keep(self, document: Any) -> None:
        """Keep something beside the layer, until it is committed or discarded.

        Args:
            document: JSON data.

        Raises:
            UnknownLayer: it was committed or discarded, or has expired.
            LayerBusy: another process commits or discards it.
        """
        with self._state.holding(self.id) as path:
            write_document(path / _RESULT, document)

    def what_was_kept(self) -> Any:
        """Return what was kept beside the layer; ``None`` if nothing was."""
        return read_document(self._path / _RESULT)

    def upper(self, index: int) -> str:
        """Return the directory with what the layer has over a root.

        Args:
            index: the root's number.
        """
        return os.fspath(self._path / str(index) / "upper")

    def finish_commit(self, path: Path) -> Committed:
        """Do what is left of a commit that was begun; the layer's lock is held."""
        try:
            steps, unfinished = self._commit(path).apply()
        except CommitRefused as error:
            return Committed(self.id, 0, _all_left(self.manifest, str(error)))
        committed = Committed(self.id, steps, unfinished)
        if committed.whole:
            for root in self.manifest.roots:
                _sync(Path(root))
            self._state.remove(path)
        return committed

    def _check_word(self, path: Path, digest: str) -> None:
        if time.time() >= self.expires_at:
            raise UnknownLayer(f"the layer {self.id} has expired")
        stored = read_document(path / _SEALED)
        if digest != self.digest or stored is None or stored["digest"] != digest:
            raise CommitRefused("another digest than that of the sealed layer")
        if manifest_from(stored["manifest"]).digest() != digest:
            raise CommitRefused("the sealed layer's manifest was changed")
        if not self.effects.complete:
            raise CommitRefused(f"the effects are incomplete: {self.effects.reasons[0]}")
        if (path / _COMMIT).exists():
            raise CommitRefused("its commit has begun; sweep() finishes it")

    def _commit(self, path: Path) -> Commit:
        uppers = tuple(
            os.fspath(path / str(index) / "upper") for index in range(len(self.manifest.roots))
        )
        return Commit(self.id, self.manifest, uppers, self._inodes)


def _all_left(manifest: Manifest, reason: str) -> tuple[Any, ...]:
    from agenttool_otel.enforcement.rehearsal.types import Unfinished

    return tuple(Unfinished(root, reason) for root in manifest.roots)


def _sealed_at(state: StateDirectory, path: Path) -> SealedLayer | None:
    document = read_document(path / _SEALED)
    if document is None:
        return None
    return SealedLayer(state, path, document)


def _resolved(roots: Sequence[Path]) -> list[str]:
    """Return the roots without symbolic links, the outer ones first, and none that lies in another
    on the same file system.
    """
    if not roots:
        raise RehearsalUnavailable("no root was given")
    found: list[str] = []
    for root in sorted({os.path.realpath(root) for root in roots}):
        if not os.path.isdir(root):
            raise RehearsalUnavailable(f"{root} is no directory")
        outer = [other for other in found if _is_inside(root, other)]
        if not outer or os.path.ismount(root):
            found.append(root)
    return found


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _check_owner(lower: str) -> None:
    status = os.lstat(lower)
    if os.geteuid() != 0 and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        raise RehearsalUnavailable(f"another user or group owns {lower}")


def _overlay(path: Path, index: int, lower: str) -> Overlay:
    """Make the directories of an overlay; its top has the attributes of the root, as an overlay shows them."""
    folder = path / str(index)
    upper, work = folder / "upper", folder / "work"
    for made in (folder, upper, work):
        made.mkdir(mode=0o700)
    status = os.lstat(lower)
    if os.geteuid() == 0:
        os.chown(upper, status.st_uid, status.st_gid)
    shutil.copystat(lower, upper)
    return Overlay(lower, os.fspath(upper), os.fspath(work))


def _sandbox(overlays: tuple[Overlay, ...], secrets: frozenset[str], lock: int) -> Sandbox:
    files = []
    directories = []
    for path in _outermost(sorted(secrets)):
        # another program's socket may be gone by now, and is neither then
        if os.path.isdir(path):
            directories.append(path)
        elif os.path.exists(path):
            files.append(path)
    if len(files) + len(directories) > _MASKS_LIMIT:
        raise RehearsalUnavailable(f"there are more than {_MASKS_LIMIT:,} secrets to mask")
    return Sandbox(overlays, tuple(files), tuple(directories), lock)


def _outermost(paths: Sequence[str]) -> Iterator[str]:
    """Yield paths that lie in no other; a mask's own content can't be masked."""
    kept: set[str] = set()
    for path in paths:
        parents = map(os.fspath, Path(path).parents)
        if kept.isdisjoint(parents):
            kept.add(path)
            yield path


def _is_reachable(path: str, lowers: Sequence[str]) -> bool:
    """Return whether commands could read a path: it is there, and no empty directory hides it."""
    try:
        os.stat(path)
    except OSError:
        return False
    if any(_is_inside(path, lower) for lower in lowers):
        return True
    return not any(_is_inside(path, private) for private in (*PRIVATE, "/dev", "/proc"))


def _secrets_of(homes: Sequence[Path]) -> Iterator[str]:
    for home in homes:
        for path in secrets_of_home(home):
            yield os.path.realpath(path)
    for path in secrets_of_system():
        yield os.path.realpath(path)


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user without a name, as in many containers
        return ""


def _sync(path: Path) -> None:
    """Write what the file system of a path still has in memory to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ctypes.CDLL(None).syncfs(descriptor)
    finally:
        os.close(descriptor)
