-- Searching the log by recipient, Message-ID and mailbox, and what callers attach to their messages.

ALTER TABLE spool
    -- An object of texts; NULL: none was given.
    ADD COLUMN metadata jsonb;

ALTER TABLE email_logs
    ADD COLUMN metadata jsonb;

-- What an address is found by: ASCII letters in lower case, whatever the database's locale, and as many bytes for each.
CREATE FUNCTION recipient_key(address text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(lower(address COLLATE "C"), 0)
$$;

-- The first of the addresses in to_address, which is all of it where there is one: the index of the log has this one.
-- A local part in quotes may hold what else stands between two addresses.
CREATE FUNCTION first_recipient(to_address text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN strpos(to_address, '"') > 0 THEN to_address ELSE split_part(to_address, ', ', 1) END
$$;

-- All recipients of a log row, in lower case; of those that name thousands the first ones, and who got it for sure first.
CREATE FUNCTION log_recipients(to_address text, cc_addresses text[], bcc_addresses text[]) RETURNS SETOF text
LANGUAGE sql IMMUTABLE AS $$
    SELECT DISTINCT lower(address COLLATE "C")
    FROM (
        SELECT address FROM unnest(bcc_addresses) AS bcc (address)
        UNION ALL
        SELECT to_address WHERE strpos(to_address, '"') > 0
        UNION ALL
        SELECT address FROM unnest(string_to_array(to_address, ', ')) AS named (address)
        UNION ALL
        SELECT address FROM unnest(cc_addresses) AS cc (address)
        LIMIT 500
    ) AS named
$$;

-- Recipients of messages that have more than one, beside the one that the log's own index has. In partitions like the
-- log's. No addresses: what is found here is compared with the log row's.
CREATE TABLE email_recipients (
    subscriber_id uuid NOT NULL,
    -- recipient_key of the address.
    recipient bigint NOT NULL,
    log_id uuid NOT NULL,
    PRIMARY KEY (subscriber_id, recipient, log_id)
) PARTITION BY RANGE (log_id);

DO $$
DECLARE
    part text;
    day date;
BEGIN
    FOR part IN
        SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'email_logs'::regclass AND relname ~ '^email_logs_[0-9]{8}$'
    LOOP
        day := to_date(right(part, 8), 'YYYYMMDD');
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF email_recipients FOR VALUES FROM (%L) TO (%L)',
            'email_recipients_' || right(part, 8),
            rpad(lpad(to_hex((extract(epoch FROM day) * 1000)::bigint), 12, '0'), 32, '0')::uuid,
            rpad(lpad(to_hex((extract(epoch FROM day + 1) * 1000)::bigint), 12, '0'), 32, '0')::uuid);
    END LOOP;
END
$$;

-- So that no statement of any release can forget them, and a message with one recipient costs no more than the
-- conditions below.
CREATE FUNCTION note_recipients() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM email_recipients
        WHERE subscriber_id = OLD.subscriber_id AND log_id = OLD.id
              AND recipient = ANY (ARRAY(
                  SELECT recipient_key(address)
                  FROM log_recipients(OLD.to_address, OLD.cc_addresses, OLD.bcc_addresses) AS address));
        RETURN NULL;
    END IF;
    -- A release before this one makes partitions of the log alone. A message is logged all the same.
    IF to_regclass('email_recipients_' || to_char(NEW.sent_at AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL THEN
        INSERT INTO email_recipients (subscriber_id, recipient, log_id)
        SELECT NEW.subscriber_id, recipient_key(address), NEW.id
        FROM log_recipients(NEW.to_address, NEW.cc_addresses, NEW.bcc_addresses) AS address
        WHERE address <> lower(first_recipient(NEW.to_address) COLLATE "C")
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER email_logs_recipients AFTER INSERT ON email_logs
FOR EACH ROW WHEN (NEW.subscriber_id IS NOT NULL
                   AND (NEW.cc_addresses <> '{}' OR NEW.bcc_addresses <> '{}'
                        OR strpos(NEW.to_address, ', ') > 0))
EXECUTE FUNCTION note_recipients();
CREATE TRIGGER email_logs_recipients_gone AFTER DELETE ON email_logs
FOR EACH ROW WHEN (OLD.subscriber_id IS NOT NULL
                   AND (OLD.cc_addresses <> '{}' OR OLD.bcc_addresses <> '{}'
                        OR strpos(OLD.to_address, ', ') > 0))
EXECUTE FUNCTION note_recipients();

-- The partitions that are there get these by a worker, one at a time, while messages are written; until then searches
-- read more. Those that are made from now on have them from the beginning.
CREATE INDEX email_logs_by_recipient ON ONLY email_logs
    (subscriber_id, recipient_key(first_recipient(to_address)), id);
CREATE INDEX email_logs_by_credential ON ONLY email_logs (credential_id, id);
-- Takes the place of email_logs_by_message_id, which the worker drops once this one is whole: it also finds a message
-- whose mailbox isn't known.
CREATE INDEX email_logs_by_message ON ONLY email_logs (message_id, credential_id)
WHERE message_id IS NOT NULL;
