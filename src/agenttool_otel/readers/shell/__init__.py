"""What a shell command means: facts that never guess.

``read_only`` is a proof. It needs four agreements: every character is read alike by all shells
(``tokens``, ``words``), a real bash grammar cuts the line into the same words (``grammar``,
``structure``), the tables have the command and each of its words (``classify``, ``operands``,
``data/``), and programs in small languages only print (``sed``, ``awk``, ``jq``). Anything else is
not proven, which is not the same as dangerous: the other facts hold what is known.

``spellings`` are the ways to read a command's words, for lists that restrict; ``plain`` is the one
for what permits.

Beside the proof stand the places: for each command the directory that it runs in and the files that
it uses, each with the path fact that a path argument would have (``directories``, ``places``,
``actions``).

``network`` and ``executes`` are true unless known to be false. ``destructive`` and
``sensitive_read`` are true when something was seen: on text that could not be read they are no
promise, and ``parsed`` is false.
"""

from agenttool_otel.readers.shell.fact import shell_fact

__all__ = ["shell_fact"]
