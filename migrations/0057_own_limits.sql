-- What the operator lets one subscriber have in place of the settings of the same names; NULL: as the setting says. The
-- ranges are the settings' own.
ALTER TABLE subscribers
    ADD COLUMN max_apps bigint CHECK (max_apps BETWEEN 1 AND 1000000),
    ADD COLUMN max_mailboxes bigint CHECK (max_mailboxes BETWEEN 2 AND 100000000),
    ADD COLUMN max_end_users bigint CHECK (max_end_users BETWEEN 2 AND 100000000),
    ADD COLUMN max_waiting_messages bigint CHECK (max_waiting_messages BETWEEN 1 AND 100000000),
    ADD COLUMN max_waiting_bytes bigint CHECK (max_waiting_bytes BETWEEN 1024 AND 1125899906842624),
    ADD COLUMN max_requests_per_second bigint CHECK (max_requests_per_second BETWEEN 1 AND 1000000);

-- The rate is the only one that gateways remember with an app; the others are read by the statements that count.
CREATE CONSTRAINT TRIGGER rates_change
AFTER UPDATE OF max_requests_per_second ON subscribers
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (OLD.max_requests_per_second IS DISTINCT FROM NEW.max_requests_per_second)
EXECUTE FUNCTION apps_subscription_changed();
