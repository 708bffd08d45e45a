import http.client, json, os, time, urllib.error, urllib.request, uuid

URL, PK, SEND_KEY = (os.environ[name] for name in ("MAILGATE_URL", "MAILGATE_PK", "MAILGATE_SEND_KEY"))


class Refused(Exception):
    """Nothing of it will come by asking again."""


class Unanswered(Exception):
    """Ask again later, with the same key and the same fields."""


def send(key, **fields):
    body = json.dumps({"pk": PK, **fields}).encode()
    headers = {"X-Send-Key": SEND_KEY, "Content-Type": "application/json", "Idempotency-Key": key}
    for attempt in range(6):
        wait = 2**attempt
        try:
            request = urllib.request.Request(f"{URL}/send", body, headers)
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in (409, 429, 500, 503, 504):
                raise Refused(error.code, error.read().decode(errors="replace")) from None
            if error.headers.get("Retry-After", "").isdigit():
                wait = int(error.headers["Retry-After"])
        except (OSError, http.client.HTTPException):
            pass  # no answer came, or half of one
        time.sleep(wait)
    raise Unanswered(key)


# One key for each message: keep it with the message until there is an answer.
answer = send(str(uuid.uuid4()), to="bob@example.com", subject="Hello", body="It works.")
print(answer["status"], answer["log_id"])  # sent; or failed_temp, and Mailgate tries again by itself
