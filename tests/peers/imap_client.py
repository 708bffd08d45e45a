"""Reads a mailbox back over IMAP with XOAUTH2 and prints a JSON list: each message in base64.

usage: imap_client.py HOST PORT CA_FILE ACCOUNT COUNT SECONDS   (the access token on stdin)

Waits until the inbox holds COUNT messages, for SECONDS at most, and prints what is there then.
"""

import base64
import imaplib
import json
import ssl
import sys
import time

host, port, ca_file, account, count, seconds = sys.argv[1:]
token = sys.stdin.read().strip()
deadline = time.monotonic() + float(seconds)

client = imaplib.IMAP4_SSL(
    host, int(port), ssl_context=ssl.create_default_context(cafile=ca_file), timeout=10
)
client.authenticate("XOAUTH2", lambda _: f"user={account}\x01auth=Bearer {token}\x01\x01".encode())
while True:
    _, [found] = client.select("INBOX", readonly=True)
    if int(found) >= int(count) or time.monotonic() >= deadline:
        break
    time.sleep(0.05)

messages = []
if int(found):
    _, parts = client.fetch("1:*", "(BODY.PEEK[])")
    messages = [part[1] for part in parts if isinstance(part, tuple)]
client.logout()
json.dump([base64.b64encode(message).decode() for message in messages], sys.stdout)
