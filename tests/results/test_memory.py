"""A result of any size is kept in bounded memory: measured as the peak RSS of a process of its own.

``ru_maxrss`` would not do: a child inherits its parent's mark through exec, and a mark never falls.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc"
)

MB = 1 << 20
BOUND = 32 * MB

PROGRAM = """
import json, os, sys, threading
kind, size, where, root, redact = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5] == "True"
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.stores.cipher import Cipher
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.store import ResultStore
from agenttool_otel.results.persistence.strategy import Demand, StrategyChoice
from agenttool_otel.names import PersistenceStrategy
from agenttool_otel.results.persistence.stream import StreamCollector
from agenttool_otel.results.transform import Transform
from pathlib import Path

if where == "obstore":
    from obstore.store import LocalStore
    from agenttool_otel.results.stores.object_store import ObjectStoreBackend
    backend = ObjectStoreBackend(LocalStore(root + "/s", mkdir=True))
else:
    backend = LocalBackend(root + "/s")
store = ResultStore(backend, cipher=Cipher(os.urandom(32)) if where == "encrypted" else None)
transform = Transform(lambda text: text.replace("9999", "[4 nines]"), lambda value, pointer: value) if redact else None
keeper = ResultKeeper(store, deadline_s=300)
line = "2026-01-01 12:00:00 INFO request 000123 handled in 17 ms by worker 4, status ok\\n"

def status(name):
    for row in open("/proc/self/status"):
        if row.startswith(name):
            return int(row.split()[1]) * 1024

def warm():  # loads every module and thread that the real run needs
    value = line * 20_000
    keeper.keep(value, keeper.choose(value), invocation_id="warm", transform=transform)

if kind == "text":
    value = line * (size // len(line))
elif kind == "bytes":
    value = line.encode() * (size // len(line))  # one piece: a copy would hide a peak of the same size
elif kind == "binary":
    value = os.urandom(1 << 20) * (size >> 20)
elif kind == "file":
    value = Path(root) / "big"
    with value.open("w") as file:
        for _ in range(size // len(line) // 1000):
            file.write(line * 1000)
warm()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the high-water mark starts anew (proc(5))
before = status("VmRSS:")
if kind == "stream":
    choice = StrategyChoice(PersistenceStrategy.INLINE, "x", 50_000, False)
    collector = StreamCollector("i", choice, store, deadline_s=300, transform=transform)
    block = line * 100
    for _ in range(size // len(block)):
        collector.add(block)
    done = collector.finish()
    failure, total = done.failure, done.total_bytes
else:
    choice = keeper.choose(value, Demand(obliged_strategy="preview_and_persist"))
    done = keeper.keep(value, choice, invocation_id="i", transform=transform)
    failure, total = done.failure, done.ref.size_bytes if done.ref else 0
print(json.dumps({"extra": status("VmHWM:") - before, "failure": failure, "total": total}))
"""


def run(kind, size, where, root, redact=False, program=PROGRAM):
    done = subprocess.run(
        [sys.executable, "-c", program, kind, str(size), where, str(root), str(redact)],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["failure"] is None
    assert found["total"] > size * 0.98
    return found["extra"]


@pytest.mark.parametrize(
    ("kind", "where", "redact"),
    [
        ("text", "local", False),
        ("text", "local", True),
        ("binary", "encrypted", False),
        ("stream", "local", True),
        ("file", "obstore", False),
    ],
)
def test_a_hundred_megabytes_are_kept_in_32_more(tmp_path, kind, where, redact):
    assert run(kind, 100 * MB, where, tmp_path, redact) <= BOUND


def test_the_measurement_sees_a_copy(tmp_path):
    """The bar can fail: a program that makes one copy of the value is caught."""
    program = PROGRAM.replace(
        'if kind == "stream":', 'copied = value + b"."\ndel copied\nif kind == "stream":'
    )
    assert run("bytes", 100 * MB, "local", tmp_path, program=program) > 90 * MB


@pytest.mark.slow
@pytest.mark.parametrize("where", ["local", "encrypted", "obstore"])
@pytest.mark.parametrize("kind", ["file", "stream", "text", "bytes"])
def test_a_gigabyte_is_kept_in_the_same_32(tmp_path, kind, where):
    assert run(kind, 1024 * MB, where, tmp_path) <= BOUND
