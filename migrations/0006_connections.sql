-- Connecting mailboxes, what is done for them later, and the events that tell of it.

-- A user's way to the provider and back (RFC 6749 §4.1.1): ten minutes, once.
CREATE TABLE oauth_states (
    -- Keyed digest of the state: the table opens nothing by itself.
    digest bytea PRIMARY KEY,
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    -- The key of the link; when it is renewed meanwhile, the link is dead.
    pushable_key text NOT NULL,
    plugin text NOT NULL,
    -- As the link had them: the app's own name for the user, and the account that is expected.
    user_id text,
    login_hint text,
    redirect_uri text NOT NULL,
    code_verifier_sealed bytea NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE INDEX oauth_states_by_end ON oauth_states (expires_at);
CREATE INDEX oauth_states_by_app ON oauth_states (app_id);

ALTER TABLE mailboxes
    -- An unused token is refreshed then, before the provider lets it lapse.
    ADD COLUMN refresh_due_at timestamptz,
    -- Within an hour or so; replies are looked for a while after it.
    ADD COLUMN last_sent_at timestamptz,
    -- Where the next look for replies begins, in the words of whatever reads the mailbox.
    ADD COLUMN replies_cursor text,
    -- The next look. One replica that looks puts it off first, so it is also the lease.
    ADD COLUMN replies_due_at timestamptz;

CREATE INDEX mailboxes_refresh_due ON mailboxes (refresh_due_at) WHERE status = 'active';
CREATE INDEX mailboxes_replies_due ON mailboxes (replies_due_at) WHERE status = 'active';
-- Whether another app has the same account, before its grant is revoked.
CREATE INDEX mailboxes_by_account ON mailboxes (plugin, email_lookup) WHERE status = 'active';

-- Replies that were told of, so that each is told once.
CREATE TABLE replies (
    credential_id uuid NOT NULL REFERENCES mailboxes (id) ON DELETE CASCADE,
    -- The reply's own Message-ID.
    message_id text NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (credential_id, message_id)
);

CREATE INDEX replies_by_age ON replies (seen_at);

-- Which message a reply answers.
CREATE INDEX email_logs_by_message_id ON email_logs (credential_id, message_id)
WHERE message_id IS NOT NULL;

-- Events on their way to an app's endpoints, written in the transaction of what they tell: one row for
-- each endpoint.
CREATE TABLE webhook_messages (
    -- The webhook-id, the same over all attempts.
    id uuid PRIMARY KEY,
    -- No foreign key: what tells of an app's end outlives the app.
    app_id uuid NOT NULL,
    event text NOT NULL,
    -- The log row that it tells of.
    log_id uuid,
    -- Where it goes and what signs it, as they were then.
    url text NOT NULL,
    secret_sealed bytea NOT NULL,
    -- The body to the byte: what is signed is what is sent.
    body text NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE INDEX webhook_messages_by_app ON webhook_messages (app_id, id);

UPDATE mailboxes SET refresh_due_at = connected_at WHERE status = 'active';
