-- Bounces of messages that were sent, which the gateway reads in the mailboxes, and what follows from them.

-- One row for each recipient and notification. They are removed with the log, by the time in log_id.
CREATE TABLE bounces (
    -- The mailbox in which the notification was read. No foreign keys: the log outlives it too.
    credential_id uuid NOT NULL,
    -- Digest of the notification and the recipient: each is reported once.
    key bytea NOT NULL,
    -- The message that came back. It may have no log row yet.
    log_id uuid NOT NULL,
    recipient text NOT NULL,
    bounce_type text NOT NULL CHECK (bounce_type IN ('permanent', 'temporary')),
    -- RFC 3463, like 5.1.1.
    status text,
    diagnostic text,
    -- When the gateway read it.
    bounced_at timestamptz NOT NULL,
    -- A permanent one of a message that the log doesn't show as sent (yet): the message is marked as bounced when
    -- it does.
    awaits_sent boolean NOT NULL,
    PRIMARY KEY (credential_id, key)
);

CREATE INDEX bounces_by_log ON bounces (log_id, bounced_at);
CREATE INDEX bounces_awaiting_sent ON bounces (log_id) WHERE awaits_sent;

-- Messages that are sent, and have bounced for at least one recipient for good. A table of its own, since few
-- messages do: the log's rows and indexes stay as they are. They are removed with the log too.
CREATE TABLE bounced_messages (
    log_id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    subscriber_id uuid NOT NULL,
    plugin text NOT NULL
);

-- What the log is filtered by, in the order of time.
CREATE INDEX bounced_messages_by_app ON bounced_messages (app_id, plugin, log_id);
CREATE INDEX bounced_messages_by_subscriber ON bounced_messages (subscriber_id, plugin, log_id);

ALTER TABLE email_counters
    -- Of the sent ones of that hour, day or month.
    ADD COLUMN plugin_a_bounced bigint NOT NULL DEFAULT 0,
    ADD COLUMN plugin_b_bounced bigint NOT NULL DEFAULT 0;

-- What those columns don't hold yet, as in email_counter_changes, which the release before adds up without them.
CREATE TABLE bounce_counter_changes (
    app_id uuid NOT NULL,
    -- That of the message's first attempt.
    hour timestamptz NOT NULL,
    plugin text NOT NULL,
    messages bigint NOT NULL
);

-- Withdraws an app's bounces from its subscriber's counters, whichever release deletes the app. It holds the lock on
-- the counters.
CREATE FUNCTION withdraw_bounced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE email_counters AS counter
    SET plugin_a_bounced = counter.plugin_a_bounced - its.plugin_a_bounced,
        plugin_b_bounced = counter.plugin_b_bounced - its.plugin_b_bounced
    FROM email_counters AS its
    WHERE its.owner_id = OLD.id AND (its.plugin_a_bounced <> 0 OR its.plugin_b_bounced <> 0)
          AND counter.owner_id = OLD.subscriber_id AND counter.unit = its.unit
          AND counter.start = its.start;
    RETURN NULL;
END
$$;

CREATE TRIGGER apps_withdraw_bounced AFTER DELETE ON apps
FOR EACH ROW EXECUTE FUNCTION withdraw_bounced();

-- Recipients that have bounced for good, by app: noted for every app, used by those that choose so.
CREATE TABLE suppressions (
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    -- In lower case.
    address text NOT NULL,
    -- The message that bounced last.
    log_id uuid NOT NULL,
    -- When the last bounce was read: thirty days later it no longer counts.
    bounced_at timestamptz NOT NULL,
    PRIMARY KEY (app_id, address)
);

-- An app's list, the newest first, and what has aged away.
CREATE INDEX suppressions_of_app ON suppressions (app_id, bounced_at, address);
CREATE INDEX suppressions_by_age ON suppressions (bounced_at);

-- Whether messages to such recipients are refused.
ALTER TABLE apps ADD COLUMN suppress_bounced boolean NOT NULL DEFAULT false;

-- Gateways remember it with the rest of the app.
CREATE CONSTRAINT TRIGGER apps_suppression_change AFTER UPDATE OF suppress_bounced ON apps
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (OLD.suppress_bounced IS DISTINCT FROM NEW.suppress_bounced)
EXECUTE FUNCTION this_app_changed();
