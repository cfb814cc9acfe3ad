"""The patterns of paths whose content is a credential, a key or the environment.

The names are words of ``data/sensitive.toml``; this module holds what stands around them. Paths are
searched as they are written, without regard to case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_START: Final = "(^|/)"
_END: Final = "(/|$)"  # of a component
_NAME: Final = "[^/]*"
_ENDING: Final = r"(\.[a-z0-9]+)?$"

_COPY: Final = r"([._~-](bak|old|orig|save|backup))?$"
"""The end of a file, or of its copy: ``.netrc.bak``."""

_SOURCE_COPY: Final = r"(\.(bak|backup|orig|old|fixed))?$"
"""The end of a source, or of its copy: ``token.py.orig``."""

_ENVIRONMENT: Final = "|".join(
    (
        rf"{_START}(environ|\.environment)$",
        f"{_START}etc/environment$",
        rf"{_START}env\.(production|prod|local|staging|dev)$",
    )
)
_DOT_ENV: Final = rf"{_START}\.env($|[./_-])|{_START}{_NAME}\.env(rc)?($|\.[a-z]+$)"

_KEY_KINDS: Final = "rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss"
_SSH_KEY: Final = f"{_START}(id_({_KEY_KINDS})|identity)([._-]{_NAME})?$"

_OTHER_HISTORIES: Final = rf"{_START}(\.lesshst|\.viminfo|\.zhistory|fish_history)$"

_MAVEN: Final = rf"{_START}\.m2/settings{_NAME}\.xml$"
_KEYRINGS: Final = rf"{_START}\.local/share/(keyrings|opencode){_END}"
_COPIED_HOME: Final = rf"{_START}\.(ssh|aws|gnupg)[._-](bak|old|backup){_END}"

_SYSTEM_DATA: Final = "boot/efi/keys|var/log/(auth\\.log|secure)|var/lib/(mysql|postgresql)"
_SYSTEM_PLACES: Final = rf"{_START}({_SYSTEM_DATA})(\.[0-9a-z]+)*{_END}"
_ACCOUNTS: Final = r"shadow|gshadow|sudoers|opasswd|smbpasswd|master\.passwd|krb5\.keytab"

_RUNTIME_SECRETS: Final = "|".join(
    (
        f"{_START}run/secrets{_END}",
        f"{_START}run/user/[^/]+/keyring{_END}",
        f"{_START}var/run/secrets{_END}",
    )
)
_STATE: Final = f"{_START}var/lib/(docker|kubelet|sss|cloud){_END}"


def secret_patterns(words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the patterns, by what they find.

    Args:
        words: the lists of ``[words]`` in ``data/sensitive.toml``.
    """
    any_of = {name: "|".join(group) for name, group in words.items()}
    # token.py and token.py.bak handle a secret, and hold none
    no_source = rf"(?!{_NAME}\.({any_of['source_endings']}){_SOURCE_COPY})"
    secret_words = any_of["secret_words"]
    return {
        "home_directories": rf"{_START}\.({any_of['home_directories']}){_END}",
        "config_directories": rf"{_START}\.config/({any_of['config_directories']}){_END}",
        "dot_env": _DOT_ENV,
        "ssh_keys": _SSH_KEY,
        "home_files": rf"{_START}\.({any_of['home_files']}){_COPY}",
        "histories": rf"{_START}\.(({any_of['shells']})_?)?history$|{_OTHER_HISTORIES}",
        "home_places": f"{_MAVEN}|{_KEYRINGS}|{_COPIED_HOME}",
        "system_places": _SYSTEM_PLACES,
        "netrc_and_git": rf"{_START}_netrc$|{_START}\.git/config$",
        "keys": rf"{_START}{_NAME}\.({any_of['key_endings']}){_ENDING}",
        "secrets": f"{_START}{no_source}(client_)?({secret_words})s?([._-]{_NAME})?$",
        "secret_endings": (
            f"{_START}{no_source}{_NAME}[._-](secret|credential|token|password|passwd)s?{_ENDING}"
        ),
        "cloud_files": (
            rf"{_START}(application_default_credentials|kubeconfig|credentials)(\.[a-z]+)?$"
        ),
        "system_files": f"{_START}etc/({any_of['system_files']}){_NAME}{_END}",
        "accounts": rf"{_START}({_ACCOUNTS})(-|\.bak|~)?$",
        "root_home": f"{_START}(root|var/root){_END}",
        "processes": f"{_START}proc/[^/]+/(task/[^/]+/)?({any_of['process_files']}){_END}",
        "kernel": f"{_START}proc/(kcore|keys|key-users|kmsg|kallsyms)$",
        "environment": _ENVIRONMENT,
        "runtime_secrets": _RUNTIME_SECRETS,
        "devices": f"{_START}dev/({any_of['devices']})",
        "state": f"{_STATE}|{_START}library/keychains{_END}",
        "program_files": f"{_START}({any_of['program_files']})$",
    }


def secret_path_pattern(words: Mapping[str, Sequence[str]]) -> str:
    """Return one pattern for all of them. Each begins where a component does: that is looked for once,
    which takes a tenth of the time.

    Args:
        words: the lists of ``[words]`` in ``data/sensitive.toml``.
    """
    behind_start = [pattern.replace(_START, "") for pattern in secret_patterns(words).values()]
    return f"(?i)(?:^|/)(?:{'|'.join(behind_start)})"
