"""Who Python's own `email` says a message is from.

stdin: a JSON list of From fields, as they stand behind the colon   stdout: per field the addresses that each way of
reading shows, as {way: [address]}

The ways are both policies of the package, and the idiom of decoding a field before it is taken to pieces.
"""

import email
import email.header
import email.policy
import email.utils
import json
import sys


def legacy(raw):
    message = email.message_from_bytes(raw, policy=email.policy.compat32)
    # Octets beyond ASCII come as objects of their own.
    values = [str(value) for value in message.get_all("From", [])]
    return [address for _, address in email.utils.getaddresses(values)]


def parsed(raw):
    message = email.message_from_bytes(raw, policy=email.policy.compat32)
    return [email.utils.parseaddr(str(value))[1] for value in message.get_all("From", [])]


def decoded_first(raw):
    message = email.message_from_bytes(raw, policy=email.policy.compat32)
    shown = []
    for value in message.get_all("From", []):
        pieces = email.header.decode_header(str(value))
        text = "".join(
            piece if isinstance(piece, str) else piece.decode(charset or "latin-1", "replace")
            for piece, charset in pieces
        )
        shown.append(email.utils.parseaddr(text)[1])
    return shown


def modern(policy):
    def read(raw):
        message = email.message_from_bytes(raw, policy=policy)
        return [
            address.addr_spec
            for value in message.get_all("From", [])
            for address in getattr(value, "addresses", ())
        ]

    return read


WAYS = {
    "getaddresses": legacy,
    "parseaddr": parsed,
    "decode_header": decoded_first,
    "policy.default": modern(email.policy.default),
    "policy.SMTP": modern(email.policy.SMTP),
}

shown = []
for field in json.load(sys.stdin):
    raw = f"From:{field}\r\nSubject: x\r\n\r\nbody\r\n".encode()
    answers = {}
    for name, way in WAYS.items():
        try:
            # Octets that it didn't decode stand in surrogates, which JSON doesn't know.
            answers[name] = [
                (address or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace") for address in way(raw)
            ]
        except Exception:  # A reader that gives up, in whatever way, shows nobody.
            answers[name] = []
    shown.append(answers)
json.dump(shown, sys.stdout)
