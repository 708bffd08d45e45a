"""Submits one message with Python's own smtplib.

usage: smtplib_client.py HOST PORT starttls|implicit CA_FILE LOGIN|PLAIN FROM TO...
environment: SMTP_USERNAME, SMTP_PASSWORD   stdin: the message

The exit status is 0 when the message was accepted for every recipient; the dialogue goes to stderr.
"""

import os
import smtplib
import ssl
import sys

host, port, tls, ca_file, mechanism, sender, *recipients = sys.argv[1:]
message = sys.stdin.buffer.read()
context = ssl.create_default_context(cafile=ca_file)
username = os.environ["SMTP_USERNAME"]
password = os.environ["SMTP_PASSWORD"]

if tls == "implicit":
    client = smtplib.SMTP_SSL(host, int(port), context=context, timeout=20)
else:
    client = smtplib.SMTP(host, int(port), timeout=20)
client.set_debuglevel(1)
try:
    client.ehlo()
    if tls == "starttls":
        client.starttls(context=context)
        client.ehlo()
    client.user, client.password = username, password
    authenticate = {"LOGIN": client.auth_login, "PLAIN": client.auth_plain}[mechanism]
    client.auth(mechanism, authenticate)
    options = [] if message.isascii() else ["BODY=8BITMIME"]
    if not (sender + "".join(recipients)).isascii():
        options.append("SMTPUTF8")
    refused = client.sendmail(sender, recipients, message, mail_options=options)
    client.quit()
except (smtplib.SMTPException, OSError) as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(1)
if refused:
    print(f"refused: {refused}", file=sys.stderr)
    sys.exit(1)
