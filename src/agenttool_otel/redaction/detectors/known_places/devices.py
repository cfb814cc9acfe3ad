"""Devices of networks and radio."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    OPTIONAL_QUOTE,
    QUOTED_VALUE,
    TO_NEXT_LINE,
    WITHIN_COMMAND,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

_USER_NAME: Final = r"(?:[^\sa]\S*|a(?:[^\sn]\S*)?|an(?:[^\sd]\S*)?|and\S+)"
"""Any word but "and": "the username and password"."""
ENABLE: Final = r"enable[ \t]+(?:secret|password)"
USER_OF_DEVICE: Final = (
    rf"username[ \t]+{_USER_NAME}[ \t]+(?:privilege[ \t]+\d+[ \t]+)?(?:secret|password)"
)
COMMUNITY: Final = r"snmp-server[ \t]+community"
DEVICE_COMMAND: Final = (
    rf"(?mi)(?:^|\s)(?:{ENABLE}|{USER_OF_DEVICE}|{COMMUNITY})[ \t]+(?:\d[ \t]+)?" + word(3, 128)
)
"""A command that gives a network device a password, as group 1."""

WORDS_BEHIND_PASSWORD: Final = (
    "ro|rw|view|encrypted|pbkdf2|privilege|role|group|version|ipv[46]|acl|level|expires?"
)
WORDS_BEHIND_USER: Final = (
    "service-type|unrestricted|operator|manager|use-acl|use-vrf|systemowner|sdrowner|mschap"
)
WORDS_BEHIND_SECRET: Final = (
    "nt-encrypted|attributes|common-criteria-policy|algorithm-type|one-time|autocommand"
    r"|user-role|\d+"
)
KEY_OF_PROTOCOL: Final = (
    r"(?:isakmp|ospf|bgp|ntp|eigrp|wpa-psk)\b[^\r\n]{0,40}?[ \t](?:key|md5|ascii)"
)
PRE_SHARED_KEY: Final = r"pre-shared-key(?:[ \t]+(?:ascii-text|hexadecimal|local|remote))?"
PARTS_OF_DEVICE: Final = "(?:chap|pap|line|vty|console|neighbor|username|enable|ppp|user|key)"
KEY_OF_PROFILE: Final = (
    r"<keyMaterial>|\bKey Content\s{0,40}:\s|\boption[ \t]+(?:key|sae_password)[ \t]+[\"']"
)

STATEMENTS: Final = (
    Statement(
        # enable secret 0 hunter2
        id="network_device",
        keywords=("enable ", "username ", "snmp-server "),
        pattern=(
            DEVICE_COMMAND
            + r"(?:[ \t]*[\r\n;\"'|]|[ \t]*\z|[ \t]+(?:"
            + WORDS_BEHIND_PASSWORD
            + "|"
            + WORDS_BEHIND_USER
            + "|"
            + WORDS_BEHIND_SECRET
            + r")\b|[ \t]+(?:[!#]|&&))"
        ),
    ),
    Statement(
        id="network_device",
        keywords=("enable ", "username ", "snmp-server "),
        pattern=DEVICE_COMMAND,
        mixed=True,
    ),
    Statement(
        # pre-shared-key local hunter2
        id="shared_key_of_device",
        keywords=(
            "radius",
            "tacacs",
            "pre-shared-key",
            "key-string",
            "isakmp ",
            "ospf ",
            "ntp ",
            "wpa-psk ",
        ),
        pattern=(
            r"(?mi)\b(?:(?:radius|tacacs)\S*[ \t][^\r\n]*?\bkey|"
            + KEY_OF_PROTOCOL
            + "|"
            + PRE_SHARED_KEY
            + r"|key-string)[ \t]+(?:\d[ \t]+)?"
            + OPTIONAL_QUOTE
            + word(4, 128)
        ),
    ),
    Statement(
        # VPN profile: gateway vpn.example.com, group staff, pre-shared key ...
        id="shared_key_of_device",
        keywords=("pre-shared key", "preshared key"),
        pattern=r"(?i)\bpre-?shared key[ \t:=]+" + OPTIONAL_QUOTE + r"([^\s\"',;]{6,128})",
        mixed=True,
    ),
    Statement(
        # tacacs server ISE1\n address ipv4 10.99.1.11\n key ...
        id="key_in_block_of_device",
        keywords=("tacacs server", "radius server"),
        pattern=(
            r"(?mi)^(?:tacacs|radius) server[ \t]+[^\r\n]{1,64}\r?\n(?:[ \t]+[^\r\n]*\n){0,4}?"
            r"[ \t]+key[ \t]+(?:\d[ \t]+)?" + word(4, 128)
        ),
    ),
    Statement(
        # ppp chap password 0 hunter2
        id="password_of_device",
        keywords=("password ",),
        prefilter=r"(?:password|secret)[ \t]+\d[ \t]+\S",
        pattern=(
            r"(?i)\b"
            + PARTS_OF_DEVICE
            + r"\b[^\r\n]{0,40}?\b(?:password|secret)[ \t]+\d[ \t]+"
            + word(3, 128)
        ),
    ),
    Statement(
        # ➜  ~ argocd admin initial-password -n argocd\nhunter2
        id="plain_text_password",
        keywords=("plain-text-password", "initial-password", "reset-password"),
        pattern=(
            r"(?i)(?:plain-text-password(?:-value)?[ \t]+\"?|initial-password"
            + TO_NEXT_LINE
            + r"[ \t]*|reset-password"
            + TO_NEXT_LINE
            + r"New value:[ \t]*)([^\s\"]{6,128})"
        ),
        mixed=True,
    ),
    Statement(
        # snmpget -v2c -c ... sw1 sysName.0
        id="snmp_community",
        keywords=("snmp",),
        pattern=(
            r"\bsnmp\w*[ \t]"
            + WITHIN_COMMAND
            + r"-c[ \t]*"
            + OPTIONAL_QUOTE
            + r"([^\s\"'-][^\s\"']{3,63})"
        ),
    ),
    Statement(
        # : PSK "..."
        id="ipsec_secrets",
        keywords=("psk", "xauth", "eap"),
        pattern=r"(?m):[ \t]*(?:PSK|XAUTH|EAP|NTLM)[ \t]+\"([^\"\r\n]{3,256})\"",
    ),
    Statement(
        # nmcli dev wifi connect Office password 'hunter2'
        id="wifi_password",
        keywords=("nmcli",),
        pattern=(
            r"\bnmcli\b" + WITHIN_COMMAND + r"[ \t]password[ \t]+" + OPTIONAL_QUOTE + word(3, 128)
        ),
    ),
    Statement(
        # WIFI:T:WPA;S:Office;P:hunter2;;
        id="wifi_code",
        keywords=("wifi:", "keymaterial", "key content", "option key", "sae_password"),
        pattern=(r"(?i)(?:\bWIFI:[^\r\n]{0,120}?;P:|" + KEY_OF_PROFILE + r")([^;\s\"'<>]{3,128})"),
    ),
    Statement(
        # AT+CWJAP="Office","hunter2"
        id="wifi_code",
        keywords=("cwjap", "cwsap"),
        pattern=r"(?i)\bAT\+CW[JS]AP\w*=\\*\"[^\"\r\n]{0,64}\"\s*,\s*" + QUOTED_VALUE,
    ),
    Statement(
        # set wireless.default_radio0.key='hunter2'
        id="wifi_code",
        keywords=("wireless.",),
        pattern=(
            r"(?i)\bwireless\.[\w@\[\].-]{1,64}\.(?:key\d?|sae_password|auth_secret|acct_secret)"
            r"\s?=\s?" + OPTIONAL_QUOTE + word(4, 128)
        ),
    ),
    Statement(
        # ssid="Praxis-Intern"\n\tpsk=...
        id="wifi_code",
        keywords=("ssid",),
        pattern=(
            r"(?i)\bssid\b"
            + TO_NEXT_LINE
            + r"[^\r\n:=]{0,12}\b(?:key|psk|schlüssel|clé|clave)\s?[:=]\s?"
            + word(8, 63)
        ),
        mixed=True,
    ),
)
