# Sends a message with the client that openapi-generator made for Python, and finds it in the log.
# Environment: MAILGATE_URL, MAILGATE_SEND_KEY, MAILGATE_API_SECRET, MAILGATE_PK; PYTHONPATH has the client.
import os

import mailgate_client
from mailgate_client import AppsApi, EventName, LogsApi, LogStatus, SendApi, SendRequest, WebhooksApi

configuration = mailgate_client.Configuration(host=os.environ["MAILGATE_URL"])
configuration.api_key["send_key"] = os.environ["MAILGATE_SEND_KEY"]
configuration.api_key["api_secret"] = os.environ["MAILGATE_API_SECRET"]
pushable_key = os.environ["MAILGATE_PK"]

with mailgate_client.ApiClient(configuration) as client:
    message = SendRequest(pk=pushable_key, to="bob@example.com", subject="From Python", body="Hello")
    sent = SendApi(client).send_with_http_info(message, idempotency_key="python-1")
    assert sent.status_code == 200, sent
    assert "ratelimit" in {name.lower() for name in sent.headers}, sent.headers
    again = SendApi(client).send_with_http_info(message, idempotency_key="python-1")
    assert "idempotent-replayed" in {name.lower() for name in again.headers}, again.headers
    assert again.data == sent.data

    logs = LogsApi(client).list_logs(status="sent", limit=1)
    assert logs.total >= 1 and logs.logs[0].id == sent.data.log_id, logs
    log = LogsApi(client).show_log(sent.data.log_id)
    assert log.subject == "From Python" and log.status == LogStatus.SENT, log
    assert len(log.attempts) == 1, log

    app = AppsApi(client).show_app(pushable_key)
    assert app.users[0].email == sent.data.var_from, app
    hooks = WebhooksApi(client)
    created = hooks.create_webhook(
        pushable_key, {"url": "https://app.example/hook", "events": [EventName.EMAIL_DOT_SENT]}
    )
    assert [hook.id for hook in hooks.list_webhooks(pushable_key).webhooks] == [created.id]
    rotated = hooks.rotate_webhook_secret(pushable_key, created.id)
    assert rotated.secret != created.secret and rotated.previous_secret_expires_at, rotated
    replayed = hooks.replay_webhook(pushable_key, created.id, {"since": "2026-01-01"})
    assert replayed.queued == 0 and replayed.next_cursor is None, replayed
    hooks.delete_webhook(pushable_key, created.id)

    try:
        LogsApi(client).list_logs(limit=1, offset=-1)
        raise SystemExit("an offset below 0 was taken")
    except Exception as error:
        assert "offset" in str(error), error
print(sent.data.log_id)
