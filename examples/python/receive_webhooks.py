# pip install standardwebhooks
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from standardwebhooks import Webhook, WebhookVerificationError

secret = os.environ["MAILGATE_WEBHOOK_SECRET"]
webhook = Webhook(secret if secret.startswith("whsec_") else secret.encode())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(min(int(length), 1 << 20) if length.isdigit() else 0)
        try:
            event = webhook.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):
            status = 400
        else:
            print(self.headers["webhook-id"], event["event"], event["data"], flush=True)
            status = 204
        self.send_response(status)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 9000))), Receiver).serve_forever()
