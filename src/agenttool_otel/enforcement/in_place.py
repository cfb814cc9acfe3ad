"""``subprocess.run`` of other people's shell tools, by ``run_command`` where a profile holds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from agenttool_otel.enforcement.commands import run_command
from agenttool_otel.enforcement.rehearsing import current_rehearsal
from agenttool_otel.enforcement.thread import held_profile

_MERGED = "exec 2>&1\n{}"
"""What a shell runs whose errors go where its output goes; a line of its own, which it runs first."""


def is_held() -> bool:
    """Return whether commands of the current code have to run under a profile."""
    return held_profile() is not None or current_rehearsal() is not None


def run_held(
    args: str | Sequence[str],
    *,
    shell: bool = False,
    check: bool = False,
    capture_output: bool = False,
    stdin: int | None = subprocess.DEVNULL,
    stdout: int | None = None,
    stderr: int | None = None,
    text: bool = False,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    start_new_session: bool = True,
) -> subprocess.CompletedProcess[str] | subprocess.CompletedProcess[bytes]:
    """Run a command under the profile that holds here, in the words of ``subprocess.run``.

    The environment is that of ``run_command``: a few variables, and those of ``env``. Each command
    has a session of its own.

    Args:
        args: a line for ``/bin/sh`` with ``shell``, or else a program with its arguments.
        shell: whether ``args`` is a line.
        check: whether a status other than 0 is an error.
        capture_output: whether both outputs are returned.
        stdin: nothing can be read, whatever is given.
        stdout: ``PIPE`` where standard output is returned.
        stderr: ``PIPE``, or ``STDOUT`` where a line's errors are part of its output.
        text: whether outputs are texts, in UTF-8.
        timeout: seconds until it is killed.
        env: variables of its environment.
        cwd: the directory to run in.
        start_new_session: it does, whatever is given.

    Raises:
        SandboxUnavailable: the profile can't be had; the command has not run.
        subprocess.TimeoutExpired: its time was over.
        subprocess.CalledProcessError: with ``check``, it ended with another status than 0.
        ValueError: a program with its arguments, and not a line, would have its outputs merged.
        OSError: the program can't be started.
    """
    line = args if isinstance(args, str) else list(args)
    if stderr == subprocess.STDOUT:
        if not isinstance(line, str):
            raise ValueError("only the outputs of a line can be merged")
        line = _MERGED.format(line)
    if isinstance(line, str) != shell:
        raise ValueError("a line is for a shell, and a list of words is not")
    done = run_command(line, cwd=cwd, env=env, timeout=timeout)
    out = _output(done.stdout, text, captured=capture_output or stdout == subprocess.PIPE)
    err = _output(done.stderr, text, captured=capture_output or stderr == subprocess.PIPE)
    if done.timed_out and timeout is not None:
        raise subprocess.TimeoutExpired(args, timeout, out, err)
    if check and done.status != 0:
        raise subprocess.CalledProcessError(done.status, args, out, err)
    ended: subprocess.CompletedProcess[str] | subprocess.CompletedProcess[bytes]
    ended = subprocess.CompletedProcess(args, done.status, out, err)  # type: ignore[assignment]
    return ended


def _output(data: bytes, text: bool, *, captured: bool) -> str | bytes | None:
    if not captured:
        return None
    return data.decode("utf-8", "replace") if text else data
