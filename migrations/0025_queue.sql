-- Messages that leave at a time of their sender's own, and what the others wait for.
ALTER TABLE spool
    -- When the sender wants it to leave, which is also opened_at and the time in its id; NULL: as soon as it came.
    -- Until its first attempt such a message stands here alone, deferred, with no log row.
    ADD COLUMN send_at timestamptz,
    -- SHA-256 of the send key that it was taken under, which must still be its app's when it leaves.
    ADD COLUMN send_key_hash bytea,
    -- It waits for its mailbox's turn: no attempt failed.
    ADD COLUMN awaits_pace boolean NOT NULL DEFAULT false;

-- What is listed of an app as scheduled, in the order in which it leaves.
CREATE INDEX spool_scheduled ON spool (app_id, id) WHERE send_at IS NOT NULL AND NOT is_logged;

-- Whether another message of a mailbox has the same Message-ID: what waits may be many now. A message that leaves
-- immediately is never in here.
CREATE INDEX spool_deferred_by_message ON spool (credential_id, message_id) WHERE state = 'deferred';

-- A scheduled message counts from the statement that takes it, which notes that itself: a trigger would cost each
-- message that leaves immediately. So it doesn't count again when it is logged, and no longer once it is gone.
CREATE OR REPLACE TRIGGER spool_stored AFTER UPDATE OF is_logged ON spool
FOR EACH ROW WHEN (NEW.is_logged AND NOT OLD.is_logged AND OLD.send_at IS NULL)
EXECUTE FUNCTION note_spool_usage();
CREATE OR REPLACE TRIGGER spool_stored_gone AFTER DELETE ON spool
FOR EACH ROW WHEN (OLD.is_logged OR OLD.send_at IS NOT NULL) EXECUTE FUNCTION note_spool_usage();
