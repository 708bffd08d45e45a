-- Subscribers (tenant accounts) and their apps.

CREATE TABLE subscribers (
    id uuid PRIMARY KEY,
    label text NOT NULL,
    email text NOT NULL,
    -- Shown again by GET /me, so it is kept sealed; found by its keyed digest.
    api_secret_sealed bytea NOT NULL,
    api_secret_digest bytea NOT NULL UNIQUE,
    payprov_customer_id text,
    -- NULL: there is no subscription.
    subscription_status text CHECK (
        subscription_status IN ('trialing', 'active', 'past_due', 'unpaid', 'canceled')
    ),
    created_at timestamptz NOT NULL
);

CREATE TABLE apps (
    id uuid PRIMARY KEY,
    subscriber_id uuid NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    -- The contract's app_id: SMTP user name, never changes.
    slug text NOT NULL CONSTRAINT apps_slug_key UNIQUE,
    name text NOT NULL,
    -- No secret: it stands in links that end users see.
    pushable_key text NOT NULL CONSTRAINT apps_pushable_key_key UNIQUE,
    send_key_sealed bytea NOT NULL,
    send_key_digest bytea NOT NULL UNIQUE,
    webhook_secret_sealed bytea NOT NULL,
    logo_url text NOT NULL DEFAULT '',
    multiuser boolean NOT NULL DEFAULT false,
    multilink boolean NOT NULL DEFAULT false,
    webhook_url text NOT NULL DEFAULT '',
    callback_url text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL
);

CREATE INDEX apps_by_subscriber ON apps (subscriber_id, created_at);
