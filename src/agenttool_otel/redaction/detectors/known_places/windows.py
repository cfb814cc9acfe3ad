"""Windows: its commands, PowerShell, the registry, remote desktops; PHP applications."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    OPTIONAL_QUOTE,
    QUOTED_VALUE,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

TYPED_NAME: Final = r"(?:password|passwd|passphrase|pwd|secret|token|api_?key)\w*[ \t]+"

STATEMENTS: Final = (
    Statement(
        # ConvertTo-SecureString 'hunter2' -AsPlainText -Force
        id="powershell_secure_string",
        keywords=("securestring",),
        pattern=r"(?i)\bconvertto-securestring\s+(?:-string\s+)?" + QUOTED_VALUE,
    ),
    Statement(
        # smbclient //srv/x -U bob%hunter2
        id="smb_user_and_password",
        keywords=("smb", "rpcclient", "winexe", "net "),
        pattern=(
            r"(?i)\b(?:smbclient|smbget|rpcclient|winexe|net)\b[^\r\n]*?\s-U[ =]?"
            + OPTIONAL_QUOTE
            + r"[^\s%\"']{1,64}%"
            + word(1, 128)
        ),
    ),
    Statement(
        # net use Z: \\\\srv\\x /user:bob hunter2
        id="windows_net_use",
        keywords=("net use", "net.exe use"),
        pattern=r"(?i)\bnet(?:\.exe)?\s+use\s[^\r\n]*?/user:\S+[ \t]+([^\s/\"']{3,128})",
    ),
    Statement(
        # net use Z: \\files\share hunter2 /user:CORP\alice
        id="windows_net_use",
        keywords=("net use", "net.exe use"),
        pattern=r"(?i)\bnet(?:\.exe)?\s+use\s+(?:[a-z*]:?\s+)?\\\\\S+[ \t]+([^\s/\"'*]{3,128})(?:\s|$)",
    ),
    Statement(
        # net user bob hunter2 /add
        id="windows_net_user",
        keywords=("net user", "net.exe user"),
        pattern=r"(?i)\bnet(?:\.exe)?\s+user\s+[^\s/]+[ \t]+([^\s/\"'*]{3,128})[ \t]+/",
    ),
    Statement(
        # net user backup hunter2
        id="windows_net_user",
        keywords=("net user", "net.exe user"),
        pattern=r"(?i)\bnet(?:\.exe)?\s+user\s+[^\s/]+[ \t]+([^\s/\"'*]{3,128})[ \t\r]*(?:$|[&|\n])",
        mixed=True,
    ),
    Statement(
        # net user scanner "..." /add /passwordchg:no /expires:never
        id="windows_net_user",
        keywords=("net user", "net.exe user"),
        pattern=r'(?i)\bnet(?:\.exe)?\s+user\s+[^\s/]+[ \t]+"([^\r\n"]{3,128})"',
    ),
    Statement(
        id="network_drive",
        keywords=("net use",),
        pattern=(
            r'(?i)\bnet(?:\.exe)?\s+use\s+[^\r\n/]{0,20}\\\\[^\s/]+[ \t]+([^\s/"*][^\s/"]{2,127})'
            r"[ \t]+/user:"
        ),
    ),
    Statement(
        # aws ssm put-parameter --name /prod/smtp/password --type SecureString --value hunter2
        id="secure_parameter",
        keywords=("securestring",),
        pattern=(
            r"(?i)\bput-parameter\b[^\r\n]*?\bsecurestring\b[^\r\n]*?--value[ \t=]+"
            + OPTIONAL_QUOTE
            + word(3, 256)
        ),
    ),
    Statement(
        # aws ssm put-parameter --name /db --value hunter2 --type SecureString
        id="secure_parameter",
        keywords=("securestring",),
        pattern=(
            r"(?i)\bput-parameter\b[^\r\n]*?--value[ \t=]+"
            + OPTIONAL_QUOTE
            + word(3, 256)
            + r"[^\r\n]*?\bsecurestring\b"
        ),
    ),
    Statement(
        # DefaultPassword    REG_SZ    hunter2
        id="registry_value",
        keywords=("reg_sz",),
        pattern=(
            r"(?i)(?:password|passwd|pwd|passphrase)\w{0,20}[ \t]+REG_(?:EXPAND_)?SZ[ \t]+"
            r"([^\s]{3,128})[ \t\r]*(?:\n|\z)"
        ),
    ),
    Statement(
        # DbPassword REG_SZ ...
        id="typed_by_name",
        keywords=("reg_sz", "reg_expand_sz", "as string"),
        pattern=(
            "(?i)"
            + TYPED_NAME
            + r"(?:REG_(?:EXPAND_)?SZ[ \t]+([^\s]{6,256})|As[ \t]+String[ \t]*=[ \t]*\""
            r"([^\"\r\n]{6,256})\")"
        ),
        likely=True,
    ),
    Statement(
        # password clear:s:hunter2
        id="remote_desktop_password",
        keywords=("password clear:s:", "password 51:b:"),
        pattern=r"(?i)\bpassword (?:clear:s|51:b):([^\s]{3,512})",
    ),
    Statement(
        # alice:7352:aad3b435b51404eeaad3b435b51404ee:...:::
        id="ntlm_dump",
        keywords=(":::",),
        pattern=r"(?im)^[^\s:]{1,80}:\d{1,10}:[0-9a-f*]{32}:([0-9a-f]{32}):::",
        kind="password_hash",
    ),
    Statement(
        # * NTLM     : ...
        id="credential_dump",
        keywords=("ntlm",),
        pattern=r"(?m)^[ \t]*\*[ \t]+(?:NTLM|LM)[ \t]*:[ \t]*([0-9a-f]{32})\b",
        kind="password_hash",
    ),
    Statement(
        # [+] 10.0.0.7:445 CORP\alice:hunter2 (Pwn3d!)
        id="spray_result",
        keywords=("[+]",),
        pattern=r"(?m)\[\+\][^\r\n]{0,120}?[\w.-]\\[\w.$-]{1,64}:([^\s]{3,128})(?:\s|$)",
    ),
    Statement(
        # BitLocker recovery key: 735201-735201-735201-735201-735201-735201-735201-735201
        id="bitlocker_recovery_key",
        keywords=("bitlocker", "recovery", "wiederherstellung", "récupération", "recuperación"),
        pattern=r"\b((?:\d{6}-){7}\d{6})\b",
        kind="credential",
    ),
    Statement(
        # FileVault recovery key: a7c3-a7c3-a7c3-a7c3-a7c3-a7c3
        id="disk_recovery_key",
        keywords=("recovery key",),
        pattern=r"(?i)\brecovery key[^\r\n:]{0,20}:\s?((?:[A-Z0-9]{4}-){5}[A-Z0-9]{4})\b",
        kind="credential",
    ),
    Statement(
        # $settings['hash_salt'] = '...';
        id="drupal_hash_salt",
        keywords=("hash_salt",),
        pattern=(r"\bhash_salt" + OPTIONAL_QUOTE + r"\]?\s*(?:=>|=|:)\s*" + QUOTED_VALUE),
    ),
    Statement(
        # 'crypt' => ['key' => '...'],
        id="magento_crypt",
        keywords=("crypt",),
        pattern=(
            r"[\"']crypt[\"']\s*(?:=>|:)\s*(?:\[|\{|array\()\s*[\"']key[\"']\s*(?:=>|:)\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # define('DB_PASSWORD', 'hunter2');
        id="php_define",
        keywords=("define(",),
        prefilter=r"""\bdefine\(\s*["']\w*(?:password|passwd|_pass|_crc|secret)""",
        pattern=(
            r"\bdefine\(\s*[\"']\w*(?:PASSWORD|PASSWD|_PASS|_CRC|SECRET)[\"']\s*,\s*" + QUOTED_VALUE
        ),
    ),
    Statement(
        # return t.SignedString([]byte("..."))
        id="go_signed_string",
        keywords=("signedstring(",),
        pattern=r"\bSignedString\(\s*\[\]byte\(\s*" + QUOTED_VALUE,
    ),
)
