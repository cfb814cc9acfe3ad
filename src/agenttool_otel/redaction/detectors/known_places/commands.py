"""Commands: options, operands, what is piped or written into them."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    LINE_END,
    OPTIONAL_QUOTE,
    QUOTE,
    QUOTED_VALUE,
    TO_NEXT_LINE,
    WITHIN_COMMAND,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

FROM_PASSWORD_STORE: Final = (
    r"op[ \t]+(?:read|item[ \t]+get)\b|(?:go)?pass[ \t]+(?:show[ \t]+)?[\w.@-]+/\S"
    r"|vault[ \t][^\r\n]*-field"
)
FROM_AWS: Final = (
    r"aws[ \t][^\r\n]*\bget-(?:secret-value|parameter|authorization-token|login-password"
    "|session-token)"
)
FROM_GCLOUD: Final = r"gcloud[ \t][^\r\n]*(?:versions[ \t]+access|print-\w+-token)"
FROM_AZURE: Final = r"az[ \t][^\r\n]*(?:keyvault[ \t]+secret|get-access-token|[ \t]keys?[ \t])"
STORE_PROGRAMS: Final = (
    "heroku|doppler|infisical|fly|gh|glab|npm|netlify|chamber|bws?|lpass|rbw|keyring"
)
MORE_STORE_PROGRAMS: Final = "secret-tool|security|sops|credstash|keepassxc-cli|akeyless|conjur"
STORE_VERBS: Final = (
    r"\b(?:secrets?|config:get|auth:token|token|get|show|password|lookup|read"
    r"|find-\w+-password|extract|decrypt|-d|-w)\b"
)
PRINTED_VARIABLE: Final = (
    r"(?:echo|printenv)[ \t]+[^\r\n|]*\b\w*(?i:passw\w*|pwd|secret|token|api_?key|_key"
    r"|_pat)\b[}\"')]*"
)
PRINTED_FILE: Final = r"cat[ \t]+\S*(?i:passw|secret|token|api_?key|credential)[\w.-]*"
GENERATORS: Final = (
    r"openssl[ \t]+rand|pwgen|apg|wg[ \t]+gen(?:key|psk)"
    r"|(?:bin/)?(?:rails|rake)[ \t]+secret"
)
FROM_CLUSTER: Final = r"kubectl[ \t][^\r\n]*(?:create[ \t]+token|base64)|oc[ \t]+whoami[ \t]+-t"
RANDOM_OR_RESET: Final = r"\w*[ \t][^\r\n]*(?:token_(?:hex|urlsafe)|/dev/urandom)|\S*reset-password"
PRINTING_WORDS: Final = (
    r"\bop[ \t]|pass[ \t]|vault[ \t]|secret|token|config|\bbws?[ \t]|\brbw|keyring|sops"
    "|credstash"
)
READERS_OF_PASSWORD: Final = (
    r"chpasswd|sudo[ \t]+-S|passwd[ \t]+--stdin|cryptsetup|vault[ \t]+login"
)
READERS_OF_SECRET: Final = (
    r"(?:secrets?[ \t]+(?:create|set|put|versions)|pass[ \t]+insert|passphrase-fd|ssh-add)"
    r"\b"
)
READERS_OF_HERE_STRING: Final = "cryptsetup|passwd|chpasswd|sudo|su|kinit|ssh-add|gpg|vault"
WINDOWS_PROGRAMS: Final = (
    r"\w*freerdp\w*|winrs|psexec|mstsc|wmic|netdom|dsadd|dsmod|signtool|certutil|schtasks"
)
VAULT_LOGIN: Final = r"vault[ \t]+login[ \t]+(?:-\S+[ \t]+)*"
LINES_TO_CHPASSWD: Final = (
    r"(?:#[^\r\n]*chpasswd|\r?\n(?:[a-z_][\w.-]{0,31}:\S+[^\r\n]*\r?\n?){0,20}?"
    r"[^\r\n]*chpasswd)"
)
# not add-trusted-cert, of which -p is a policy: "-p ssl"
KEYCHAIN_ACTIONS: Final = (
    r"(?:import|export|unlock-\w+|create-\w+|set-key\S+|add-(?:generic|internet)\S+)"
)

STATEMENTS: Final = (
    Statement(
        # echo 'deploy:hunter2' | chpasswd
        id="piped_password",
        keywords=(
            "chpasswd",
            "sudo -s",
            "--stdin",
            "password-stdin",
            "with-token",
            "cryptsetup",
            "vault login",
        ),
        pattern=(
            r"(?i)\b(?:echo|printf)[ \t]+(?:-[ne][ \t]+)?(?:[\"']%s(?:\\n)?[\"'][ \t]+)?"
            + OPTIONAL_QUOTE
            + r"(?:[\w.-]{1,64}:)?([^\s\"'|:]{3,128})"
            + OPTIONAL_QUOTE
            + r"[ \t]*\|[ \t]*(?:base64[^\r\n|]*\|[ \t]*)?(?:sudo[ \t]+)?(?:"
            + READERS_OF_PASSWORD
            + r"|[a-z]+\b[^\r\n|]*?(?:--password-stdin|--with-token))"
        ),
    ),
    Statement(
        # echo -n ... | docker secret create db_pw -
        id="piped_secret",
        keywords=(
            "secret create",
            "secret set",
            "secret put",
            "secrets create",
            "secrets versions",
            "pass insert",
            "passphrase-fd",
            "ssh-add",
        ),
        pattern=(
            r"(?i)\b(?:echo|printf)[ \t]+(?:-[ne]+[ \t]+)?(?:[\"']%s(?:\\n)?[\"'][ \t]+)?"
            + OPTIONAL_QUOTE
            + r"([^\s\"'|$]{3,256})"
            + OPTIONAL_QUOTE
            + r"[ \t]*\|[ \t]*(?:sudo[ \t]+)?[^\r\n|]*?"
            + READERS_OF_SECRET
        ),
    ),
    Statement(
        # kinit ann <<< hunter2
        id="here_string",
        keywords=("<<<",),
        pattern=(
            r"(?i)\b(?:"
            + READERS_OF_HERE_STRING
            + r"|(?:docker|podman|helm|gh|az|oc)[^\r\n|;]{0,40}?login)\b[^\r\n|;<]*<<<[ \t]*"
            + OPTIONAL_QUOTE
            + r"(?:[\w.-]{1,64}:)?([^\s\"'$]{3,128})"
        ),
    ),
    Statement(
        # 504  read -s PW <<< 'hunter2'
        id="here_string",
        keywords=("<<<",),
        pattern=(
            r"(?i)\b(?:secrets?[ \t]+(?:put|set|create|add)|read[ \t]+-s)\b[^\r\n|;<]*<<<[ \t]*"
            + OPTIONAL_QUOTE
            + r"([^\s\"'$]{3,256})"
        ),
    ),
    Statement(
        # rsync --password-file=<(echo hunter2) rsync://bk@host/mod .
        id="process_substitution",
        keywords=("<(",),
        pattern=(
            r"<\([ \t]*(?:echo|printf)[ \t]+(?:-[ne][ \t]+)?(?:[\"']%s(?:\\n)?[\"'][ \t]+)?"
            + OPTIONAL_QUOTE
            + r"(?:[\w.-]{1,64}:)?([^\s\"'|:()$]{6,256})"
            + OPTIONAL_QUOTE
            + r"[ \t]*\)"
        ),
        mixed=True,
    ),
    Statement(
        # echo ... | base64 -d
        id="decoded_by_command",
        keywords=("base64 -d", "base64 --d", "base64 -D"),
        pattern=(
            r"(?i)(?:\becho[ \t]+(?:-n[ \t]+)?|<<<[ \t]*)"
            + OPTIONAL_QUOTE
            + "([A-Za-z0-9+/]{12,}={0,2})"
            + OPTIONAL_QUOTE
            + r"[ \t]*\|[ \t]*base64[ \t]+(?:-d|--decode)"
        ),
        mixed=True,
        decoded=True,
    ),
    Statement(
        # restic -r s3:x --password-command "echo hunter2"
        id="password_command",
        keywords=("password-command", "password_command", "passcommand", "pass_command"),
        pattern=(
            r"(?i)\bpass(?:word)?[-_]?command[= ][ \t]*"
            + OPTIONAL_QUOTE
            + r"(?:echo|printf)[ \t]+(?:-n[ \t]+)?"
            + OPTIONAL_QUOTE
            + r"([^\s\"'|$]{3,128})"
        ),
    ),
    Statement(
        # backup:hunter2  # chpasswd input
        id="chpasswd_lines",
        keywords=("chpasswd",),
        pattern=r"(?m)^[ \t]*[a-z_][\w.-]{0,31}:([^\s:]{6,128})[ \t]*" + LINES_TO_CHPASSWD,
    ),
    Statement(
        # htpasswd -bc .htpasswd bob hunter2
        id="htpasswd",
        keywords=("htpasswd",),
        pattern=(
            r"\bhtpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+(?:\S+\s+){1,2}"
            + OPTIONAL_QUOTE
            + r"([^\s\"'|;&]{3,128})"
        ),
    ),
    Statement(
        # vault login ...
        id="login_with_token",
        keywords=("login",),
        prefilter=r"\blogin[ \t]+\S{20}",
        pattern=(
            r"\b[a-z][\w-]{1,20}[ \t]+(?:auth[ \t]+)?login[ \t]+(?:--?[\w-]+[ \t]+)*"
            r"([A-Za-z0-9_-]{20,256})(?:\s|\z)"
        ),
        kind="credential",
        likely=True,
    ),
    Statement(
        # wpa_passphrase Office hunter2
        id="command_with_user_and_password",
        keywords=("rabbitmqctl", "mosquitto_passwd", "wpa_passphrase", "etcdctl"),
        pattern=(
            r"\b(?:rabbitmqctl\b"
            + WITHIN_COMMAND
            + r"\b(?:add_user|change_password|authenticate_user)[ \t]+\S+[ \t]+"
            r"|mosquitto_passwd[ \t]"
            + WITHIN_COMMAND
            + r"-b[ \t]+\S+[ \t]+\S+[ \t]+|wpa_passphrase[ \t]+(?:\"[^\"]*\"|'[^']*'|\S+)[ \t]+"
            r"|etcdctl\b"
            + WITHIN_COMMAND
            + r"\buser[ \t]+add[ \t]+[\w.-]+:)"
            + OPTIONAL_QUOTE
            + r"([^\s\"'|;&]{3,128})"
        ),
    ),
    Statement(
        # useradd -m -p 'hunter2' deploy
        id="command_with_user_and_password",
        keywords=("useradd", "usermod", "adduser"),
        pattern=(
            r"\b(?:useradd|usermod|adduser)\b"
            + WITHIN_COMMAND
            + r"\s(?:-p|--password)[ \t=]*"
            + OPTIONAL_QUOTE
            + r"([^\s\"'$(-][^\s\"']{2,255})"
        ),
    ),
    Statement(
        id="command_with_key",
        keywords=("vault login", "mc alias", "mc config"),
        pattern=(
            r"\b(?:" + VAULT_LOGIN + r"|mc[ \t]+(?:alias|config[ \t]+host)[ \t]+(?:set|add)"
            r"[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]+)" + OPTIONAL_QUOTE + r"([^\s\"'=]{8,256})"
        ),
        kind="credential",
        likely=True,
    ),
    Statement(
        # cargo login cio...
        id="command_with_key",
        keywords=("operator unseal", "cargo login", "authtoken", "importprivkey"),
        pattern=(
            r"(?i)\b(?:vault[ \t]+operator[ \t]+unseal|cargo[ \t]+login|(?:add-)?authtoken"
            r"|importprivkey)[ \t]+(?:-\S+[ \t]+)*" + OPTIONAL_QUOTE + word(16, 256)
        ),
        kind="credential",
        likely=True,
    ),
    Statement(
        # xfreerdp /u:bob /p:hunter2 /v:10.0.0.4
        id="slash_option",
        keywords=(
            "freerdp",
            "signtool",
            "certutil",
            "winrs",
            "psexec",
            "mstsc",
            "schtasks",
            "sc create",
            "sc config",
            "net use",
            "runas",
            "taskkill",
            "wmic",
            "systeminfo",
            "driverquery",
            "getmac",
            "dsadd",
            "dsmod",
            "djoin",
            "netdom",
        ),
        pattern=(
            r"(?i)\b(?:"
            + WINDOWS_PROGRAMS
            + r"|sc(?:\.exe)?[ \t]+(?:create|config)|taskkill|systeminfo|driverquery|getmac)\b"
            + WITHIN_COMMAND
            + r"\s(?:[/-]p[: \t][ \t]*|[/-](?:rp|pwd|passwordd|passwordo|passwd|password)"
            r"[: \t][ \t]*|password=[ \t]*)" + OPTIONAL_QUOTE + r"([^\s\"'/-][^\s\"']{2,127})"
        ),
    ),
    Statement(
        # rar a -hphunter2 backup.rar docs/
        id="encrypted_archive",
        keywords=("rar ", "pdftk"),
        pattern=(
            r"(?i)\b(?:(?:un)?rar\b"
            + WITHIN_COMMAND
            + r"\s-hp|pdftk\b"
            + WITHIN_COMMAND
            + r"\s(?:user_pw|owner_pw|input_pw)[ \t]+(?:\w{1,8}=)?)"
            + OPTIONAL_QUOTE
            + word(3, 128)
        ),
    ),
    Statement(
        # msoffcrypto-tool -p hunter2 Budget.xlsx plain.xlsx
        id="encrypted_archive",
        keywords=("owner_pw", "msoffcrypto"),
        pattern=(
            r"(?i)(?:\bowner_pw[ \t]+|\bmsoffcrypto\S*[ \t]"
            + WITHIN_COMMAND
            + r"-p[ \t]+)"
            + OPTIONAL_QUOTE
            + word(3, 128)
        ),
    ),
    Statement(
        # openssl dgst -sha512 -hmac 'hunter2' payload.json
        id="openssl_hmac_key",
        keywords=("openssl",),
        pattern=(
            r"(?i)\bopenssl\b"
            + WITHIN_COMMAND
            + r"\s(?:-hmac[ \t]+|-macopt[ \t]+(?:hex)?key:)"
            + OPTIONAL_QUOTE
            + word(4, 256)
        ),
    ),
    Statement(
        # ssh-keygen -p -P hunter2 -N hunter2 -f id_rsa
        id="key_passphrase",
        keywords=("ssh-keygen",),
        pattern=(
            r"\bssh-keygen\b" + WITHIN_COMMAND + r"\s-[NP][ \t]*" + OPTIONAL_QUOTE + word(3, 128)
        ),
    ),
    Statement(
        id="key_passphrase",
        keywords=("ssh-keygen",),
        pattern=(
            r"\bssh-keygen\b"
            + WITHIN_COMMAND
            + r"\s-[NP][ \t]*\S+"
            + WITHIN_COMMAND
            + r"\s-[NP][ \t]*"
            + OPTIONAL_QUOTE
            + word(3, 128)
        ),
    ),
    Statement(
        # AGE-SECRET-KEY-1...
        id="age_key",
        keywords=("age-secret-key-1",),
        pattern=r"(?i)\bAGE-SECRET-KEY-1([0-9A-Z]{40,80})",
        kind="private_key",
    ),
    Statement(
        id="keychain_command",
        # security unlock-keychain -p River.6584 login.keychain
        keywords=("security ",),
        prefilter=r"security[ \t]+(?:import|unlock|create|set|add|export)",
        pattern=(
            r"\bsecurity[ \t]+"
            + KEYCHAIN_ACTIONS
            + r"\b"
            + WITHIN_COMMAND
            + r"\s-[pPw][ \t]+(?:"
            + QUOTE
            + r")?([^\s\"'/.-][^\s\"']{2,127})(?:[\s\"']|$)"
        ),
    ),
    Statement(
        id="keychain_command",
        # security set-key-partition-list -k hunter2; of "import", -k build.keychain is a file
        keywords=("security ",),
        prefilter=r"security[ \t]+(?:import|unlock|create|set|add|export)",
        pattern=(
            r"\bsecurity[ \t]+"
            + KEYCHAIN_ACTIONS
            + r"\b"
            + WITHIN_COMMAND
            + r"\s-k[ \t]+(?:"
            + QUOTE
            + r")?([^\s\"'/.-][^\s\"'.]{2,127})(?:[\s\"']|$)"
        ),
    ),
    Statement(
        # ansible-vault encrypt_string 'hunter2' --name db_password
        id="encrypted_text",
        keywords=("encrypt_string", "encrypt-string"),
        pattern=(
            r"\bencrypt[_-]string\b(?:[ \t]+--?[\w-]+(?:[ \t=]@?\w+)?)*?[ \t]+" + QUOTED_VALUE
        ),
    ),
    Statement(
        # lftp -u bob,... sftp://files.internal
        id="lftp_user",
        keywords=("lftp ",),
        pattern=(
            r"\blftp\b[^\r\n|]*?\s(?:-u|--user)[ \t=]"
            + OPTIONAL_QUOTE
            + r"[^\s,\"']{1,64},"
            + word(3, 128)
        ),
    ),
    Statement(
        # child.expect('Password:'); child.sendline('hunter2')
        id="expect_send",
        keywords=("send",),
        pattern=(
            r"(?i)password:?\s?\*?"
            + QUOTE
            + r"[^\r\n]{0,40}?\bsend(?:line)?\b[ \t(]+(?:--[ \t]+)?"
            + QUOTE
            + r"([^\"'\r\n\\]{3,256})"
        ),
    ),
    Statement(
        # expect "assword:"\nsend "hunter2\r"
        id="expect_send",
        keywords=("send",),
        prefilter="assword[^a-z]{0,40}(?:exp_)?send",
        pattern=(
            r"(?i)\bexpect\b[^\r\n]{0,30}assword[^a-z]{0,40}(?:exp_)?send(?:line)?\b[ \t(]+"
            r"(?:--[ \t]+)?" + QUOTE + r"([^\"'\r\n\\]{3,256})"
        ),
    ),
    Statement(
        # $ export BW_SESSION="..."
        id="vault_session",
        keywords=("bw_session",),
        pattern="BW_SESSION=(?:" + QUOTE + ")?([A-Za-z0-9+/]{40,}={0,2})",
        kind="credential",
    ),
    Statement(
        # $ echo $DB_PASSWORD\nhunter2
        id="printed_secret",
        keywords=(
            "op read",
            "op item",
            "pass ",
            "vault ",
            "get-secret-value",
            "get-parameter",
            "get-authorization-token",
            "versions access",
            "-token",
            "keyvault secret",
            "config:get",
            "auth:token",
            "auth token",
            "secrets get",
            "bw get",
            "bws ",
            "lpass ",
            "rbw ",
            "keyring ",
            "secret-tool",
            "security find",
            "sops ",
            "chamber ",
            "credstash",
            "echo ",
            "printenv ",
            "cat ",
            "openssl rand",
            "pwgen",
            "apg ",
            "wg gen",
            "rails secret",
            "rake secret",
            "create token",
            "base64 -d",
            "base64 --decode",
            "whoami -t",
            "token_hex",
            "token_urlsafe",
            "urandom",
            "keepassxc-cli",
            "get secret",
            "config get",
            "reset-password",
        ),
        prefilter=(
            "(?:"
            + PRINTING_WORDS
            + r"|echo[ \t]|printenv|\bcat[ \t]|rand\b|pwgen|\bapg|\bwg[ \t]|base64|urandom|passw)"
            + TO_NEXT_LINE
            + r"[^\s]{6}"
        ),
        pattern=(
            r"(?m)(?:^|[$#%>;&|(][ \t]?)(?:"
            + FROM_PASSWORD_STORE
            + "|"
            + FROM_AWS
            + "|"
            + FROM_GCLOUD
            + "|"
            + FROM_AZURE
            + "|(?:"
            + STORE_PROGRAMS
            + "|"
            + MORE_STORE_PROGRAMS
            + r")[ \t][^\r\n]*"
            + STORE_VERBS
            + "|"
            + PRINTED_VARIABLE
            + "|"
            + PRINTED_FILE
            + "|"
            + GENERATORS
            + "|"
            + FROM_CLUSTER
            + "|"
            + RANDOM_OR_RESET
            + ")"
            + TO_NEXT_LINE
            + OPTIONAL_QUOTE
            + r"([^\s\"'<>{}\[][^\s\"'<>{}]{5,999})"
            + OPTIONAL_QUOTE
            + LINE_END
        ),
        mixed=True,
    ),
    Statement(
        # b2 authorize-account ... ...
        id="backblaze_account",
        keywords=("authorize-account", "authorize_account"),
        pattern=(
            r"\bb2(?:v\d)?[ \t]+(?:account[ \t]+)?authorize[-_]account[ \t]+\S{1,64}[ \t]+"
            + OPTIONAL_QUOTE
            + word(20, 64)
        ),
        kind="credential",
    ),
)
