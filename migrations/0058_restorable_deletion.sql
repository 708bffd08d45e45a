-- Accounts that the operator has deleted, and may restore for a time.
ALTER TABLE subscribers
    -- From when on it is removed with all that it has; NULL: it isn't deleted.
    ADD COLUMN deletion_due_at timestamptz,
    -- Its subscription doesn't renew, since it is deleted: so a restore makes it renew again, unless its owner had
    -- canceled it.
    ADD COLUMN renewal_stopped boolean NOT NULL DEFAULT false;

CREATE INDEX subscribers_deletion_due ON subscribers (deletion_due_at) WHERE deletion_due_at IS NOT NULL;

-- What gateways remember of its apps no longer holds, as with a suspension.
CREATE CONSTRAINT TRIGGER deletions_change
AFTER UPDATE OF deletion_due_at ON subscribers
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (OLD.deletion_due_at IS DISTINCT FROM NEW.deletion_due_at)
EXECUTE FUNCTION apps_subscription_changed();
