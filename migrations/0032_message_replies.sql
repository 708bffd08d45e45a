-- Replies to messages, for as long as the log has those. They are removed with the log, by the time in log_id.
CREATE TABLE message_replies (
    log_id uuid NOT NULL,
    -- That of replies.message_id.
    key text NOT NULL,
    -- Who wrote it.
    from_address text NOT NULL,
    -- When the gateway read it.
    replied_at timestamptz NOT NULL,
    PRIMARY KEY (log_id, key)
);
