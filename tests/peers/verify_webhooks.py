# Verifies webhooks with PyPI `standardwebhooks`.
#
#   stdin: a JSON array of {secret, raw, headers, body}; raw: the key is the bytes of the secret itself
#   stdout: a JSON array of what came of each: "verified", or why it was refused
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def verdict(case):
    secret = case["secret"].encode() if case["raw"] else case["secret"]
    try:
        Webhook(secret).verify(case["body"], case["headers"])
        return "verified"
    except WebhookVerificationError as error:
        return str(error)


print(json.dumps([verdict(case) for case in json.load(sys.stdin)]))
