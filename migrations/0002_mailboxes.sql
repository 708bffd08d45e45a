-- End users of apps, and the mailboxes that they connected.

CREATE TABLE end_users (
    user_key uuid PRIMARY KEY,
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    -- The app's own name for the user; NULL for the one user of an app without multiuser.
    user_id text,
    created_at timestamptz NOT NULL,
    CONSTRAINT end_users_app_user_key UNIQUE NULLS NOT DISTINCT (app_id, user_id)
);

CREATE TABLE mailboxes (
    -- Shown as cred_…
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    user_key uuid NOT NULL REFERENCES end_users (user_key) ON DELETE CASCADE,
    plugin text NOT NULL CHECK (plugin IN ('plugin_a', 'plugin_b')),
    -- As the provider spells it.
    email text NOT NULL,
    -- The address in lower case: what a From header is looked up by.
    email_lookup text NOT NULL,
    status text NOT NULL CHECK (status IN ('active', 'disconnected')),
    disconnect_reason text,
    scopes text[] NOT NULL,
    -- Sealed; NULL once the mailbox is disconnected.
    refresh_token_sealed bytea,
    access_token_sealed bytea,
    access_token_expires_at timestamptz,
    -- Goes up with each new access token: who saw an older one knows that somebody has refreshed.
    token_generation bigint NOT NULL DEFAULT 1,
    -- Until then one replica refreshes the token and the others wait for the next generation.
    refresh_lease_until timestamptz,
    connected_at timestamptz NOT NULL,
    disconnected_at timestamptz,
    CONSTRAINT mailboxes_user_address_key UNIQUE (user_key, plugin, email_lookup)
);

-- A send's choice: the first connected one of the app, by user, plugin or address.
CREATE INDEX mailboxes_active_by_app ON mailboxes (app_id, connected_at, id)
WHERE status = 'active';
CREATE INDEX mailboxes_active_by_address ON mailboxes (app_id, email_lookup, connected_at)
WHERE status = 'active';
