"""Two hundred inputs of agents: commands and paths as they were given, honest and hostile."""

from __future__ import annotations

import itertools

PROGRAMS = (
    *("ls -la", "git status", "git diff HEAD~1", "cat README.md", "rg -n TODO src", "wc -l *.py"),
    *("find . -name '*.py'", "python -m pytest -q", "pip install requests", "rm -rf build"),
    *("git push --force", "chmod 777 a.sh", "sed -n 1,20p a.py", "sed -i s/a/b/ a.py", "make"),
    *("curl -s https://example.com", "tar xf a.tgz", "mv a b", "cp a b", "touch a", "echo hi"),
    *("env -S 'rm -rf /'", "sudo id", "awk 'BEGIN{system(\"id\")}'", "head -n 3 a.txt", "jq . a"),
)
JOINTS = ("{}", "{} | head", "cd sub && {}", "{} > out.txt", "{}; id", "VAR=1 {}")
PATHS = (
    *("a.txt", "src/main.py", "../other/a", "/etc/passwd", "/etc/shadow", "~/.ssh/id_rsa", ".env"),
    *(
        "src/../../etc/shadow",
        "/srv/project/a",
        "/srv/projects/a",
        "/proc/self/environ",
        ".git/config",
    ),
    *("a\u202etxt", "%2e%2e/a", "/tmp/x", "//etc//shadow", "notes.md", "sub/.npmrc", "", "\x00"),
    *("C:\\Windows\\a", "file:///etc/passwd", "/dev/sda", "/srv/project/../secret", "a b.txt"),
    *("node_modules/x", "/root/.bashrc", "/var/log/syslog", "secrets/key.pem", "Makefile"),
    *(
        "./././a",
        "/srv/project",
        ".",
        "..",
        "/",
        "src/",
        "ａ.txt",
        "e\u0301.txt",
        "*.py",
        "$HOME/a",
    ),
    *("src/${X}", "`id`", "-rf", "--help", "\\\\host\\share", "a\nb"),
)


def inputs() -> list[tuple[str, dict[str, str]]]:
    """Return tools with their arguments."""
    lines = [joint.format(program) for program, joint in itertools.product(PROGRAMS, JOINTS)]
    commands = [("run_command", {"command": line}) for line in lines]
    paths = [("read_file", {"path": path}) for path in PATHS]
    return commands + paths
