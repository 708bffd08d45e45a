-- What the journal writes beside the log: attempts, counters, and the keys that callers give.

-- The attempts of messages that did not leave at the first one, in partitions like the log's.
CREATE TABLE email_attempts (
    log_id uuid NOT NULL,
    -- From 1 on.
    number integer NOT NULL,
    at timestamptz NOT NULL,
    duration_ms bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('sent', 'failed_temp', 'failed_perm')),
    error_message text,
    PRIMARY KEY (log_id, number)
) PARTITION BY RANGE (log_id);

-- Messages by the hour (UTC) of their first attempt. Statistics and totals come from here, so they
-- outlive the log.
CREATE TABLE email_counters (
    app_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    plugin text NOT NULL,
    status text NOT NULL CHECK (status IN ('sent', 'failed_temp', 'failed_perm')),
    messages bigint NOT NULL,
    PRIMARY KEY (app_id, hour, plugin, status)
) WITH (fillfactor = 50);

-- Idempotency-Key: which message a key stands for, and what its caller was first told.
CREATE TABLE idempotency_keys (
    app_id uuid NOT NULL,
    key text NOT NULL,
    -- Of what was asked for: another request under the same key is a mistake.
    request_digest bytea NOT NULL,
    log_id uuid NOT NULL,
    -- NULL until there is one. Of a message whose process died there never is: its log row tells.
    answer jsonb,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (app_id, key)
);

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

ALTER TABLE spool
    -- The log has the message as failed_temp already.
    ADD COLUMN is_logged boolean NOT NULL DEFAULT false;
UPDATE spool SET is_logged = true WHERE attempts > 0;

-- How much a mailbox has sent lately, shared by all replicas.
CREATE TABLE mailbox_pace (
    credential_id uuid PRIMARY KEY REFERENCES mailboxes (id) ON DELETE CASCADE,
    -- When the next message's turn is: each one moves it on by what it takes of a minute.
    next_turn timestamptz NOT NULL,
    day_began timestamptz NOT NULL,
    day_messages bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE mailboxes
    -- The provider itself said that the mailbox has sent enough.
    ADD COLUMN parked_until timestamptz;
