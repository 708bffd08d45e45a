//! schemathesis' rules: what the document can't say of valid data.

/// What the document can't say of valid data, each with its reason.
pub(super) const RULES: &str = r#"
# Whether a host is valid is more than a pattern can say (IDNA, IPv4 in all its spellings), so these
# take the addresses given here, and 422 is an answer to the ones that schemathesis makes up.
[dictionaries.addresses]
values = ["", "https://127.0.0.1:9/hook", "https://xn--bcher-kva.example:8443/?a=b#c", "https://192.0.2.7/"]
[[operations]]
include-name = ["POST /apps", "PUT /apps/{pushable_key}"]
parameters."body.logo_url" = { dictionary = "addresses" }
parameters."body.webhook_url" = { dictionary = "addresses" }
parameters."body.callback_url" = { dictionary = "addresses" }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]

# The same for the addresses of webhooks, and for secrets, whose length is in bytes; an app has twenty
# configurations at most.
[dictionaries.endpoints]
values = ["https://app.invalid/hook", "https://xn--bcher-kva.invalid:8443/?a=b#c"]
[dictionaries.secrets]
values = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "correct horse battery staple"]
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks"
parameters."path.pushable_key" = { dictionary = "lasting", probability = 0.8 }
parameters."body.url" = { dictionary = "endpoints" }
parameters."body.secret" = { dictionary = "secrets", probability = 0.7 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]
[[operations]]
include-name = "PUT /apps/{pushable_key}/webhooks/{webhook_id}"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "webhooks", probability = 0.8 }
parameters."body.url" = { dictionary = "endpoints" }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 422]

# What networks, mailboxes and times ahead are is more than a schema says; there are twenty keys at most.
[[operations]]
include-name = ["POST /apps/{pushable_key}/send-keys", "PUT /apps/{pushable_key}/send-keys/{id}", "POST /me/api-secrets"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]

# Which characters are invisible is more than a pattern says; a name of nothing else is empty.
[[operations]]
include-name = ["PATCH /me", "POST /subscribers"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429]

# Tests of one app go one at a time; an event that is under way is not sent twice.
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/test"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "webhooks", probability = 0.8 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 429]
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "told", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "deliveries", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409]
[[operations]]
include-name = "POST /apps/{pushable_key}/deliveries/{delivery_id}/retry"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "own_deliveries", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409]
[[operations]]
include-name = "GET /apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "told", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "deliveries", probability = 0.9 }
[[operations]]
include-name = "GET /apps/{pushable_key}/deliveries/{delivery_id}"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.delivery_id" = { dictionary = "own_deliveries", probability = 0.9 }

# No schema says how long a secret is in bytes.
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/rotate-secret"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "webhooks", probability = 0.8 }
parameters."body.secret" = { dictionary = "secrets", probability = 0.7 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 422]

# A day that its month doesn't have is no date; only an active configuration gets anything again, and one
# replay of an app goes on at a time.
[[operations]]
include-name = "POST /apps/{pushable_key}/webhooks/{webhook_id}/replay"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
parameters."path.webhook_id" = { dictionary = "told", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]
[[operations]]
include-name = "POST /apps/{pushable_key}/replay"
parameters."path.pushable_key" = { dictionary = "hooked", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 409, 422]

[[operations]]
include-name = ["POST /payprov/checkout-setup", "POST /payprov/portal"]
parameters."body.portal_url" = { dictionary = "pages" }
parameters."body.return_url" = { dictionary = "pages" }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 422]
[dictionaries.pages]
values = ["https://app.example/billing", "https://xn--bcher-kva.example:8443/?a=b#c"]

# A message that is right in itself is refused with 422 when the app has no such mailbox, and when it
# has neither body nor html: no schema says the first.
[[operations]]
include-name = "POST /send"
parameters."body.pk" = { dictionary = "sending", probability = 0.9 }
parameters."body.send_at" = { dictionary = "leaving", probability = 0.9 }
parameters."body.from" = { dictionary = "senders", probability = 0.9 }
parameters."body.user_id" = { dictionary = "senders_users", probability = 0.9 }
parameters."body.plugin" = { dictionary = "senders_plugins", probability = 0.9 }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 422]

# A day that its month doesn't have is no date, which no pattern says; nor does one say which cursors were handed out.
[[operations]]
include-name = ["GET /logs", "GET /audit"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 422]

# A message that was tried now is soon no longer there to be tried.
[[operations]]
include-name = ["POST /logs/{log_id}/retry", "POST /logs/{log_id}/cancel"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 402, 404, 409]

# Only a browser that was sent to the provider before can bring a state that is known.
[[operations]]
include-name = "GET /oauth/callback"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 410]

# Only the gateway can seal what stands in these.
[[operations]]
include-name = "GET /connect/result"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 404]

# Nor is a made-up session one, and beside it nothing else may stand.
[[operations]]
include-name = ["GET /connect/{pushable_key}", "POST /connect/{pushable_key}"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 303, 404, 410, 422]

# No schema says which host is the app's own.
[[operations]]
include-name = "POST /apps/{pushable_key}/connect-sessions"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 404, 422]
"#;

/// Two different keys at once are a 400 whatever else is right, which no schema says: headers can't exclude
/// each other there. So no request has both.
pub(super) const HOOKS: &str = r#"
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    if case.headers and "X-Send-Key" in case.headers:
        case.headers.pop("X-Api-Key", None)
"#;
