-- What a gateway may remember of an app between two messages: its key, its subscription's status, and which of its
-- mailboxes sends as whom. The version is another one after each change of any of it, so that the statement that
-- takes a message can tell whether what was remembered still holds.

-- In the order in which deletions cascade, so that nobody waits for this in a circle.
LOCK TABLE subscribers, apps, end_users, mailboxes, mailbox_addresses IN SHARE ROW EXCLUSIVE MODE;

CREATE TABLE app_versions (
    app_id uuid PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE,
    -- At random, so that no database that was put back to an earlier state ever has one twice.
    version uuid NOT NULL DEFAULT gen_random_uuid()
) WITH (fillfactor = 70);

CREATE FUNCTION app_changed(changed uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE app_versions SET version = gen_random_uuid() WHERE app_id = changed
$$;

CREATE FUNCTION app_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO app_versions (app_id) VALUES (NEW.id);
    RETURN NULL;
END $$;

CREATE FUNCTION this_app_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM app_changed(NEW.id);
    RETURN NULL;
END $$;

CREATE FUNCTION apps_subscription_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    app uuid;
BEGIN
    FOR app IN SELECT id FROM apps WHERE subscriber_id = NEW.id ORDER BY id LOOP
        PERFORM app_changed(app);
    END LOOP;
    RETURN NULL;
END $$;

-- Of a row that has its app's id.
CREATE FUNCTION apps_senders_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM app_changed(OLD.app_id);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM app_changed(NEW.app_id);
    END IF;
    RETURN NULL;
END $$;

-- Those below come at the end of their transactions, so that nobody waits for another one's other work.

CREATE TRIGGER apps_begin AFTER INSERT ON apps
FOR EACH ROW EXECUTE FUNCTION app_begins();

CREATE CONSTRAINT TRIGGER apps_change
AFTER UPDATE OF subscriber_id, slug, pushable_key, send_key_digest, multiuser ON apps
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION this_app_changed();

CREATE CONSTRAINT TRIGGER subscriptions_change
AFTER UPDATE OF subscription_status ON subscribers
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (OLD.subscription_status IS DISTINCT FROM NEW.subscription_status)
EXECUTE FUNCTION apps_subscription_changed();

CREATE CONSTRAINT TRIGGER mailboxes_come_and_go AFTER INSERT OR DELETE ON mailboxes
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION apps_senders_changed();

-- Not its tokens: one that has lapsed is not remembered, and one that the provider refuses is read anew.
CREATE CONSTRAINT TRIGGER mailboxes_change
AFTER UPDATE OF app_id, user_key, plugin, email, email_lookup, status, scopes, connected_at,
                by_session, parked_until ON mailboxes
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION apps_senders_changed();

CREATE CONSTRAINT TRIGGER mailbox_addresses_change
AFTER INSERT OR UPDATE OR DELETE ON mailbox_addresses
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION apps_senders_changed();

-- They go with their apps, and their mailboxes with them.
CREATE CONSTRAINT TRIGGER end_users_change
AFTER INSERT OR UPDATE OF app_id, user_key, user_id ON end_users
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION apps_senders_changed();

INSERT INTO app_versions (app_id) SELECT id FROM apps;
