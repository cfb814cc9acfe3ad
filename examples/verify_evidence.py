"""Check a signed statement of decision records without agenttool: needs the package cryptography alone.

python verify_evidence.py STATEMENT PUBLIC_KEY.pem FOLDER [RECORDS.key]

The folder holds the files that the statement names, oldest first there. With the records' key their
chain is checked, too.
"""

import base64
import hashlib
import json
import lzma
import sys
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_pem_public_key

envelope = json.loads(Path(sys.argv[1]).read_bytes())
payload = base64.b64decode(envelope["payload"])
kind = envelope["payloadType"].encode()
signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
public = load_pem_public_key(Path(sys.argv[2]).read_bytes())
public.verify(
    base64.b64decode(envelope["signatures"][0]["sig"]), signed
)  # raises if it is not theirs
statement = json.loads(payload)
if statement["predicateType"] != "urn:agenttool:decision-records:1":
    sys.exit("a statement of something else")

lines = []
for subject in statement["subject"]:
    content = (Path(sys.argv[3]) / subject["name"]).read_bytes()
    if hashlib.sha256(content).hexdigest() != subject["digest"]["sha256"]:
        sys.exit(f"{subject['name']} was changed")
    if subject["name"].endswith(".xz"):
        content = lzma.decompress(content)
    lines += content.splitlines()
print("the signature and every file are as stated")

if len(sys.argv) > 4:
    secret = base64.b64decode(Path(sys.argv[4]).read_bytes())
    key = hashlib.sha256(b"agenttool.decision.chain\0" + secret).digest()
    heads = {}
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # its writer was killed; the head shows whether more is missing
        producer = record["producer"]
        if heads.setdefault(producer, record["previous"]) != record["previous"]:
            sys.exit(f"the line before {record['sequence']} of {producer} was changed or taken out")
        heads[producer] = hashlib.blake2b(line, key=key, digest_size=16).hexdigest()
    if heads != statement["predicate"]["heads"]:
        sys.exit("the chains end elsewhere than stated")
    print("the chain holds")
