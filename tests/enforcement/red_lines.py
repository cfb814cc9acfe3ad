"""Lines and functions that try to get out of the profile ``read``.

A line runs in ``$OUT``, a directory that its user may write, with ``$SECRET`` (masked), ``$PORT``,
``$UDP``, ``$UNIX`` and ``$ABSTRACT`` (listeners), and ``$AGENT``, the process that holds it. What a
line leaves in the background sleeps for ``$NAP`` seconds, by which it is found.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

PYTHON = "/usr/bin/python3 -S -c"

LINES = {
    # shell
    "redirect": "echo x > $OUT/new",
    "append": "echo x >> $OUT/file",
    "tee": "echo x | tee $OUT/new",
    "dd": "dd if=/dev/zero of=$OUT/file bs=1 count=1 conv=notrunc",
    "cp": "cp /etc/hosts $OUT/new",
    "mv": "mv $OUT/file $OUT/moved",
    "mv into the temporary directory": "mv $OUT/file $TMPDIR/",
    "rm": "rm -rf $OUT/file $OUT/tree",
    "find delete": "find $OUT -delete",
    "mkdir": "mkdir $OUT/made",
    "rmdir": "rmdir $OUT/empty",
    "sed in place": "sed -i s/a/b/ $OUT/file",
    "truncate": "truncate -s 0 $OUT/file",
    "truncate by redirection": ": > $OUT/file",
    "chmod": "chmod 777 $OUT/file",
    "chmod of a directory": "chmod -R 777 $OUT",
    "chown": "chown 1:1 $OUT/file",
    "touch": "touch $OUT/file",
    "touch with a time": "touch -d 2001-01-01 $OUT/file",
    "mkfifo": "mkfifo $OUT/pipe",
    "mknod": "mknod $OUT/disk b 8 0",
    "install": "install -m 777 /etc/hosts $OUT/new",
    "tar": "tar -C $OUT -cf $OUT/new.tar file",
    "tar out": "cd $TMPDIR && mkdir a && echo x > a/new && tar cf t.tar -C a new && tar -C $OUT -xf t.tar",
    "write from awk": "awk 'BEGIN { print 1 > ENVIRON[\"OUT\"] \"/new\" }'",
    "write from perl": "perl -e 'open F, \">$ENV{OUT}/new\" and print F 1'",
    "unlink from perl": "perl -e 'unlink \"$ENV{OUT}/file\"'",
    "core dump": "cd $OUT; ulimit -c unlimited; /bin/sh -c 'kill -SEGV $$'",
    "sqlite": "sqlite3 $OUT/new.db 'create table t(a)'",
    # links
    "symbolic link": "ln -s /etc/hosts $OUT/link",
    "hard link": "ln $OUT/file $OUT/link",
    "hard link out of the temporary directory": "echo x > $TMPDIR/a; ln $TMPDIR/a $OUT/link",
    "hard link into the temporary directory": "ln $OUT/file $TMPDIR/b && echo x > $TMPDIR/b",
    "write through a link": "ln -s $OUT $TMPDIR/l && echo x > $TMPDIR/l/new",
    "hard link to the secret": "ln $SECRET $TMPDIR/s; cat $TMPDIR/s",
    "link to the secret": "ln -s $SECRET $TMPDIR/s; cat $TMPDIR/s",
    "secret moved": "mv $SECRET $TMPDIR/s; cat $TMPDIR/s",
    "exchange": f"{PYTHON} 'import ctypes,os; ctypes.CDLL(None).renameat2(-100, os.environb[b\"SECRET\"], -100, os.environb[b\"TMPDIR\"]+b\"/x\", 2)'",
    # reads
    "cat the secret": "cat $SECRET",
    "cat from its directory": "cd $(dirname $SECRET) && cat secret",
    "secret by a dotted path": "cat $OUT/../keys/./secret",
    "secret as a program": ". $SECRET",
    "secret by grep": "grep -r . $(dirname $SECRET)",
    "secret copied": "cp $SECRET $TMPDIR/c; cat $TMPDIR/c",
    "secret by descriptor": "exec 7<$SECRET; cat <&7",
    "secret by /proc": "cat /proc/self/root$SECRET; cat /proc/$AGENT/root$SECRET; cat /proc/self/cwd/../keys/secret",
    "secret by tar": "tar cf - $SECRET",
    "secret by diff": "diff $SECRET /dev/null",
    "password file": "cat /etc/shadow | sed s/^/secret-/",
    "raw disk": "head -c 64 /dev/vda /dev/sda | sed s/^/secret-/",
    # processes
    "environment of the agent": "for p in /proc/$AGENT /proc/$AGENT/task/*; do head -c 1 $p/environ && echo secret-; done",
    "memory of the agent": f"{PYTHON} 'import os,glob\nfor p in glob.glob(\"/proc/%s/task/*/mem\" % os.environ[\"AGENT\"]): print(\"secret-\", open(p, \"rb\"))'",
    "descriptors of the agent": "ls -l /proc/$AGENT/fd/ && echo secret-; ls -l /proc/$AGENT/task/*/fd/ && echo secret-",
    "kill the agent": "kill -9 $AGENT",
    "kill its threads": "for t in /proc/$AGENT/task/*; do kill -9 ${t##*/}; done",
    "kill its group": "kill -9 -$(ps -o pgid= -p $AGENT | tr -d ' ')",
    "kill a thread by tgkill": f"{PYTHON} 'import os,ctypes\na=int(os.environ[\"AGENT\"])\nfor t in os.listdir(\"/proc/%d/task\" % a): ctypes.CDLL(None).syscall(234, a, int(t), 9); ctypes.CDLL(None).syscall(200, int(t), 9)'",
    "kill with upper bits": f"{PYTHON} 'import os,ctypes\na=int(os.environ[\"AGENT\"])\nctypes.CDLL(None).syscall(62, ctypes.c_long(a | 1 << 40), ctypes.c_long(9))'",
    "signal by an open file's owner": f"{PYTHON} 'import os,fcntl\nr,w=os.pipe()\nfcntl.fcntl(r,8,int(os.environ[\"AGENT\"]))\nfcntl.fcntl(r,10,9)\nfcntl.fcntl(r,4,0o20000)\nos.write(w,b\"x\")'",
    "limits of the agent": f"{PYTHON} 'import os,resource; resource.prlimit(int(os.environ[\"AGENT\"]), resource.RLIMIT_NOFILE, (3, 3))'",
    "priority of the agent": f"{PYTHON} 'import os; os.setpriority(os.PRIO_PROCESS, int(os.environ[\"AGENT\"]), 19)'",
    "ptrace": f"{PYTHON} 'import os,ctypes; print(\"secret-\" if ctypes.CDLL(None).ptrace(16, int(os.environ[\"AGENT\"]), 0, 0) == 0 else 1)'",
    "read memory": f"{PYTHON} 'import os,ctypes; print(\"secret-\" if ctypes.CDLL(None).syscall(310, int(os.environ[\"AGENT\"]), 0, 0, 0, 0, 0) != -1 else 1)'",
    # left behind
    "background": "sleep $NAP &",
    "background that ignores signals": "(trap '' HUP TERM INT; sleep $NAP) &",
    "nohup": "nohup sleep $NAP >/dev/null 2>&1 &",
    "new session": "setsid sleep $NAP >/dev/null 2>&1 &",
    "daemon": f"{PYTHON} 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  os.closerange(0,9); os.execvp(\"sleep\", [\"sleep\", os.environ[\"NAP\"]])'",
    "daemon without an environment": "env -i setsid sleep $NAP >/dev/null 2>&1 &",
    "job control": "bash -c 'set -m; sleep $NAP & sleep $NAP &'",
    "at": "echo 'touch $OUT/new' | at now",
    "cron": "echo '* * * * * touch /tmp/x' | crontab -",
    # bombs
    "fork bomb": "f() { test $1 = 9 || { f $(($1 + 1)) & f $(($1 + 1)) & }; sleep $NAP; }; f 0",
    # nine doublings: a bomb without an end would hit those who work beside the test
    "fork bomb in sessions": f"{PYTHON} 'import os,time\nfor n in range(9):\n if os.fork()==0: os.setsid()\nos.execvp(\"sleep\", [\"sleep\", os.environ[\"NAP\"]])'",
    "memory bomb": f"{PYTHON} 'x=bytearray(1<<34)\nprint(len(x))'",
    "output bomb": "yes | head -c 50000000",
    # network
    "tcp": "bash -c 'echo x > /dev/tcp/127.0.0.1/$PORT'",
    "udp": "bash -c 'echo x > /dev/udp/127.0.0.1/$UDP'",
    "curl": "curl -s -m 3 http://127.0.0.1:$PORT/",
    "curl by a Unix socket": "curl -s -m 3 --unix-socket $UNIX http://x/",
    "docker socket": "curl -s -m 3 --unix-socket /var/run/docker.sock http://x/containers/json",
    "python tcp": f"{PYTHON} 'import os,socket; socket.create_connection((\"127.0.0.1\", int(os.environ[\"PORT\"])))'",
    "python abstract": f"{PYTHON} 'import os,socket; socket.socket(socket.AF_UNIX).connect(\"\\0\" + os.environ[\"ABSTRACT\"])'",
    "python datagram pair": f"{PYTHON} 'import os,socket; a,b=socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b\"x\", os.environ[\"UNIX\"]+\"d\")'",
    "listen": f"{PYTHON} 'import socket; socket.create_server((\"127.0.0.1\", 0)); print(\"secret-\")'",
    "node": "node -e 'require(\"net\").connect(process.env.PORT)'",
    "perl": "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:$ENV{PORT}\")'",
    "netlink": "ip link add dummy9 type dummy",
    # kernel
    "mount": "mount -t tmpfs none $OUT",
    "user namespace": "unshare -rm sh -c 'mount --bind $TMPDIR $OUT; echo x > $OUT/new; cat $SECRET'",
    "user namespace by clone": f"{PYTHON} 'import ctypes,os\np=ctypes.CDLL(None).syscall(56, 0x10000011, 0, 0, 0, 0)\nprint(\"secret-\" if p >= 0 else p)'",
    "clone3": f"{PYTHON} 'import ctypes\na=(ctypes.c_uint64*11)(0x10000000,0,0,0,17)\np=ctypes.CDLL(None).syscall(435, a, 88)\nprint(\"secret-\" if p >= 0 else p)'",
    "chroot": "chroot $OUT /bin/sh -c 'echo x > new'",
    "io_uring": f"{PYTHON} 'import ctypes; print(\"secret-\" if ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(256)) >= 0 else 1)'",
    "file attributes": f"{PYTHON} 'import fcntl,os,struct; fcntl.ioctl(os.open(os.environ[\"OUT\"]+\"/file\", 0), 0x40086602, struct.pack(\"l\", 16))'",
    "new file attributes": f"{PYTHON} 'import ctypes,os; a=(ctypes.c_uint64*4)(0x10); print(\"secret-\" if ctypes.CDLL(None).syscall(469, -100, os.environb[b\"OUT\"]+b\"/file\", a, 32, 0) == 0 else 1)'",
    "extended attribute": f"{PYTHON} 'import os; os.setxattr(os.environ[\"OUT\"]+\"/file\", \"user.a\", b\"x\")'",
    "new fchmodat": f"{PYTHON} 'import ctypes,os; ctypes.CDLL(None).syscall(452, -100, os.environb[b\"OUT\"]+b\"/file\", 0o777, 0)'",
    "32-bit numbers": f"{PYTHON} 'import ctypes,os; ctypes.CDLL(None).syscall(0x40000000 + 90, os.environb[b\"OUT\"]+b\"/file\", 0o777)'",
    "kernel settings": "echo 1 > /proc/sys/kernel/panic; echo 1 > /sys/kernel/mm/ksm/run",
    "shared memory": f"{PYTHON} 'import ctypes; print(\"secret-\" if ctypes.CDLL(None).shmget(0x5eed, 4096, 0o1666) >= 0 else 1)'",
    "dev shm": "echo x > /dev/shm/agenttool-red; rm /dev/shm/agenttool-red && echo secret-",
    "memfd": f"{PYTHON} 'import os\nf=os.memfd_create(\"a\")\nos.write(f,b\"#!/bin/sh\\necho x > $OUT/new; cat $SECRET\\n\")\nos.execve(f,[\"a\"],dict(os.environ))'",
    # programs that run others
    "make": "printf 'all:\\n\\techo x > $$OUT/new; cat $$SECRET\\n' | make -f -",
    "git hook": "cd $TMPDIR && git init -q r && cd r && printf '#!/bin/sh\\necho x > $OUT/new; cat $SECRET\\n' > h && mkdir hooks && cp /bin/sh hooks/pre-commit; git -c core.hooksPath=hooks -c user.name=a -c user.email=a@b commit --allow-empty -m x",
    "git alias": "git -c alias.x='!echo x > $OUT/new; cat $SECRET' x",
    "git in the outside": "cd $OUT && git init -q .",
    "setuid program": "su -c 'touch $OUT/new' root </dev/null; newgrp root </dev/null; passwd -d nobody",
    "own setuid": "cp /bin/sh $TMPDIR/s && chmod 4755 $TMPDIR/s; $TMPDIR/s -p -c 'echo x > $OUT/new'",
    "xargs": "echo $OUT/new | xargs touch",
    "compiled": "cd $TMPDIR && printf '#include <fcntl.h>\\n#include <stdlib.h>\\nint main(){return open(getenv(\"OUT\"), O_TMPFILE|O_WRONLY, 0600) < 0 ? 0 : 3;}' > a.c && gcc -D_GNU_SOURCE -o a a.c; /lib64/ld-linux-x86-64.so.2 ./a; test $? = 3 && echo secret-",
    "loader": "/lib64/ld-linux-x86-64.so.2 /bin/touch $OUT/new",
    "terminal input": f"{PYTHON} 'import fcntl; fcntl.ioctl(open(\"/dev/tty\"), 0x5412, b\"x\"); print(\"secret-\")'",
}  # fmt: skip


def _open_for_writing(out: str) -> None:
    with open(f"{out}/new", "w") as file:
        file.write("x")


def _open_truncating(out: str) -> None:
    os.close(os.open(f"{out}/file", os.O_RDONLY | os.O_TRUNC))


def _map(out: str) -> None:
    with open(f"{out}/file", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[0] = 0


def _fork(out: str) -> None:
    child = os.fork()
    if child == 0:
        try:
            _open_for_writing(out)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _thread(out: str) -> None:
    thread = threading.Thread(target=shutil.rmtree, args=(out,), kwargs={"ignore_errors": True})
    thread.start()
    thread.join()


def _module(out: str) -> None:
    sys.dont_write_bytecode = False
    sys.path.insert(0, out)
    __import__("red_module")


def _bind(out: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{out}/made")


def _signal_all(out: str) -> None:
    os.kill(os.getppid(), signal.SIGKILL)


def _lift(out: str) -> None:
    ctypes.CDLL(None).prctl(38, 0, 0, 0, 0)
    _open_for_writing(out)


FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "open": _open_for_writing,
    "open that truncates": _open_truncating,
    "mmap": _map,
    "fork": _fork,
    "thread": _thread,
    "rmtree": lambda out: shutil.rmtree(out),
    "unlink": lambda out: os.unlink(f"{out}/file"),
    "rename": lambda out: os.rename(f"{out}/file", f"{out}/moved"),
    "chmod": lambda out: os.chmod(f"{out}/file", 0o777),
    "fchmod": lambda out: os.fchmod(os.open(f"{out}/file", os.O_RDONLY), 0o777),
    "utime": lambda out: os.utime(f"{out}/file", (1, 1)),
    "truncate": lambda out: os.truncate(f"{out}/file", 0),
    "link": lambda out: os.link(f"{out}/file", f"{out}/link"),
    "module's cache": _module,
    "bind": _bind,
    "signal to the parent": _signal_all,
    "privileges back": _lift,
    "popen": lambda out: os.popen(f"echo x > {out}/new").read(),
    "background": lambda out: subprocess.Popen(
        ["setsid", "sleep", os.environ["NAP"]], stdout=subprocess.DEVNULL
    ),
    "secret": lambda out: open(os.environ["SECRET"]).read(),
    "own memory of another path": lambda out: open("/proc/self/root" + os.environ["SECRET"]).read(),
    "tcp": lambda out: socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))),
    "udp": lambda out: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
        b"x", ("127.0.0.1", int(os.environ["UDP"]))
    ),
    "unix": lambda out: socket.socket(socket.AF_UNIX).connect(os.environ["UNIX"]),
    "abstract": lambda out: socket.socket(socket.AF_UNIX).connect("\0" + os.environ["ABSTRACT"]),
}  # fmt: skip
