"""Clients that send through the published ports until the doors close, and know what they were told."""

import http.client
import json
import smtplib
import ssl
import threading
import time
from collections import Counter

SMTP_CLIENTS = 3
REST_CLIENTS = 4

# For a connection, which is tried again; for an answer; for every client's hundred, and for their end. All
# but the first are long enough for a machine that does something else besides.
CONNECT_SECONDS = 10
ANSWER_SECONDS = 120
LOAD_SECONDS = 600


def recipient(number):
    """Whose message takes the provider two seconds, so that some are being submitted at any time, and
    whose waits in the spool; the others' is through at once."""
    if number % 40 == 7:
        return "slow@example.com"
    if number % 10 == 9:
        return "tempfail@example.com"
    return "bob@example.com"


class Load:
    """`told` has a word for each message by its subject: accepted (250, 200, 202), refused, or unknown
    where the connection ended before an answer."""

    def __init__(self, app, ca_file):
        self.app = app
        self.told = {}
        self.answers = Counter()
        self.last_error = None
        self._lock = threading.Lock()
        self._tls = ssl.create_default_context(cafile=ca_file)
        clients = [self._starttls] * SMTP_CLIENTS + [self._implicit_tls] * SMTP_CLIENTS + [self._rest] * REST_CLIENTS
        self._threads = [
            threading.Thread(target=self._client, args=(kind,), daemon=True) for kind in clients
        ]
        self._stopping = threading.Event()
        self.failures = []
        for thread in self._threads:
            thread.start()

    def await_accepted(self, wanted, limit=LOAD_SECONDS):
        """Until each kind of answer has come this often."""
        end = time.monotonic() + limit
        while True:
            assert not self.failures, self.failures
            with self._lock:
                if all(self.answers[kind] >= count for kind, count in wanted.items()):
                    return
            assert time.monotonic() < end, (
                f"{dict(self.answers)} after {limit} s, not {wanted}; last error: {self.last_error}"
            )
            time.sleep(0.1)

    def finish(self):
        """Waits for all clients, whom the closed doors end."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(LOAD_SECONDS)
            assert not thread.is_alive(), "a client still waits for an answer"
        assert not self.failures, self.failures

    def _client(self, kind):
        while not self._stopping.is_set():
            try:
                kind()
            except (OSError, http.client.HTTPException) as error:
                # The doors are closed, or were while a message was under way: the ledger says which.
                # (smtplib's errors are OSErrors.)
                self.last_error = repr(error)
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001 a thread's failure is the test's
                self.failures.append(repr(error))
                return

    def _begin(self, kind):
        with self._lock:
            number = len(self.told)
            subject = f"{kind}-{number}"
            self.told[subject] = "unknown"
        return subject, recipient(number)

    def _end(self, subject, kind, is_accepted):
        with self._lock:
            self.told[subject] = "accepted" if is_accepted else "refused"
            self.answers[kind if is_accepted else f"{kind} refused"] += 1

    def _starttls(self):
        with smtplib.SMTP("localhost", 587, timeout=CONNECT_SECONDS) as client:
            client.starttls(context=self._tls)
            self._submit(client, "587")

    def _implicit_tls(self):
        with smtplib.SMTP_SSL("localhost", 465, timeout=CONNECT_SECONDS, context=self._tls) as client:
            self._submit(client, "465")

    def _submit(self, client, kind):
        client.sock.settimeout(ANSWER_SECONDS)
        client.login(self.app["app_id"], self.app["send_key"])
        while not self._stopping.is_set():
            subject, to = self._begin(kind)
            message = f"From: ada@sandbox.example\r\nTo: {to}\r\nSubject: {subject}\r\n\r\nHello\r\n"
            try:
                client.sendmail("ada@sandbox.example", [to], message)
            except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused, smtplib.SMTPRecipientsRefused):
                self._end(subject, kind, False)
                raise ConnectionError("refused") from None
            self._end(subject, kind, True)

    def _rest(self):
        connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=CONNECT_SECONDS)
        headers = {"X-Send-Key": self.app["send_key"], "Content-Type": "application/json"}
        try:
            while not self._stopping.is_set():
                if connection.sock is None:
                    connection.connect()
                    connection.sock.settimeout(ANSWER_SECONDS)
                subject, to = self._begin("rest")
                body = {"pk": self.app["pushable_key"], "to": to, "subject": subject, "body": "Hello"}
                connection.request("POST", "/send", json.dumps(body), headers)
                answer = connection.getresponse()
                answer.read()
                self._end(subject, "rest", answer.status in (200, 202))
        finally:
            connection.close()
