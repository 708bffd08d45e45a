-- Keys with less power: further send keys of an app, and further API secrets of a subscriber. Their values are shown
-- once, at creation; what is kept finds and checks them, and gives nobody a value that works.

-- In the order in which deletions cascade, so that nobody waits for this in a circle.
LOCK TABLE subscribers IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE apps IN ACCESS EXCLUSIVE MODE;

-- Of the contract's one key, which stays in its own columns.
ALTER TABLE apps
    -- NULL: since the app was created.
    ADD COLUMN send_key_renewed_at timestamptz,
    -- To the minute.
    ADD COLUMN send_key_last_used_at timestamptz;

CREATE TABLE send_keys (
    -- Shown as skey_…; UUID version 7.
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name text NOT NULL,
    -- The SHA-256 of the value in hexadecimal digits, sealed, so that the digest can be made anew for another key.
    hash_sealed bytea NOT NULL,
    -- Of that SHA-256, keyed like the digests of apps.
    digest bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    -- To the minute; NULL: never.
    last_used_at timestamptz,
    -- NULL: it doesn't expire.
    expires_at timestamptz,
    -- Networks in CIDR notation; none: it may be used from anywhere.
    allowed_addresses text[] NOT NULL,
    -- The mailboxes that it may send from; none: all of them.
    credential_ids uuid[] NOT NULL
);

CREATE INDEX send_keys_by_app ON send_keys (app_id, id);

-- What a gateway remembers of an app includes its keys.
CREATE CONSTRAINT TRIGGER send_keys_change
AFTER UPDATE OF app_id, digest, expires_at, allowed_addresses, credential_ids OR DELETE ON send_keys
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION apps_senders_changed();

CREATE TABLE api_secrets (
    -- Shown as asec_…; UUID version 7.
    id uuid PRIMARY KEY,
    subscriber_id uuid NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    name text NOT NULL,
    -- As in send_keys.
    hash_sealed bytea NOT NULL,
    digest bytea NOT NULL UNIQUE,
    -- What it may be used for.
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    -- To the minute; NULL: never.
    last_used_at timestamptz,
    -- NULL: it doesn't expire.
    expires_at timestamptz
);

CREATE INDEX api_secrets_by_subscriber ON api_secrets (subscriber_id, id);

-- The additional API secret that authenticated the change; it may be deleted since.
ALTER TABLE audit_entries ADD COLUMN api_secret_id uuid;
