"""The head and the tail of an output, in bounded memory."""

from __future__ import annotations


class Output:
    """Keeps the first and the last bytes of what is added.

    Args:
        limit: how many bytes are kept.
    """

    def __init__(self, limit: int) -> None:
        self._head_size = limit - limit // 2
        self._tail_size = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.omitted = 0

    def add(self, data: bytes) -> None:
        """Take some more bytes."""
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # cut when twice as much is there: each byte is moved once
        if len(self._tail) > 2 * self._tail_size + 65536:
            self._cut()

    def _cut(self) -> None:
        over = len(self._tail) - self._tail_size
        if over > 0:
            del self._tail[:over]
            self.omitted += over

    def kept(self) -> bytes:
        """Return the head and the tail; a line between them states what is left out."""
        self._cut()
        if not self.omitted:
            return bytes(self._head + self._tail)
        note = f"\n[{self.omitted} bytes left out]\n".encode()
        return bytes(self._head) + note + bytes(self._tail)
