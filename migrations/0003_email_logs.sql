-- One row a message, in partitions of one day (UTC) by the time in its UUIDv7 id. A worker makes the
-- partitions ahead and drops them when they are older than LOG_RETENTION_DAYS.

CREATE TABLE email_logs (
    -- Shown as log_…; its time is the first attempt's, the same as sent_at.
    id uuid NOT NULL PRIMARY KEY,
    app_id uuid NOT NULL,
    credential_id uuid NOT NULL,
    from_address text NOT NULL,
    to_address text NOT NULL,
    cc_addresses text[] NOT NULL,
    -- Recipients of the envelope that no header names.
    bcc_addresses text[] NOT NULL,
    subject text NOT NULL,
    plugin text NOT NULL,
    status text NOT NULL CHECK (status IN ('sent', 'failed_temp', 'failed_perm')),
    error_message text,
    message_id text,
    size_bytes bigint NOT NULL,
    has_attachments boolean NOT NULL,
    sent_at timestamptz NOT NULL
) PARTITION BY RANGE (id);

CREATE INDEX email_logs_by_app ON email_logs (app_id, id);
