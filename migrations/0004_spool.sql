-- Messages in the gateway's hands. A row stands from before the submission until the log row is
-- written; it stays, with the raw message, while a retry is ahead.

CREATE TABLE spool (
    -- The message's log id.
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    credential_id uuid NOT NULL,
    -- What the log row will say, so that a message whose process died is logged all the same.
    from_address text NOT NULL,
    to_address text NOT NULL,
    cc_addresses text[] NOT NULL,
    bcc_addresses text[] NOT NULL,
    subject text NOT NULL,
    plugin text NOT NULL,
    message_id text,
    size_bytes bigint NOT NULL,
    has_attachments boolean NOT NULL,
    -- The envelope.
    recipients text[] NOT NULL,
    smtputf8 boolean NOT NULL,
    opened_at timestamptz NOT NULL,
    -- open: being submitted, no raw message here. deferred: waits for its next attempt.
    state text NOT NULL CHECK (state IN ('open', 'deferred')),
    -- Attempts that have failed so far.
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    -- Who works on the row holds it until then; past it, its process has died.
    lease_until timestamptz
) WITH (fillfactor = 70);

-- What the workers look for: deferred rows that are due, and rows whose holder died.
CREATE INDEX spool_due ON spool (next_attempt_at) WHERE state = 'deferred';
CREATE INDEX spool_held ON spool (lease_until) WHERE state = 'open';

-- What goes with an app that is deleted.
CREATE INDEX spool_deferred_by_app ON spool (app_id) WHERE state = 'deferred';

-- The raw message in pieces, so that nobody has to hold it twice.
CREATE TABLE spool_chunks (
    spool_id uuid NOT NULL REFERENCES spool (id) ON DELETE CASCADE,
    position integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (spool_id, position)
);

-- Mail is compressed badly or encrypted already; don't spend time on it.
ALTER TABLE spool_chunks ALTER COLUMN content SET STORAGE EXTERNAL;
