-- Accounts that the operator has suspended.
ALTER TABLE subscribers
    -- Since when nothing is sent for it, whatever its subscription, and the reason that it reads; NULL: it isn't suspended.
    ADD COLUMN suspended_at timestamptz,
    ADD COLUMN suspension_reason text;

-- What gateways remember of its apps no longer holds, as with the status of its subscription.
CREATE CONSTRAINT TRIGGER suspensions_change
AFTER UPDATE OF suspended_at, suspension_reason ON subscribers
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (
    (OLD.suspended_at, OLD.suspension_reason) IS DISTINCT FROM (NEW.suspended_at, NEW.suspension_reason)
)
EXECUTE FUNCTION apps_subscription_changed();

-- Both are told by mail. The wider list holds for all rows that there are.
ALTER TABLE billing_notices
    DROP CONSTRAINT billing_notices_kind_check,
    ADD CONSTRAINT billing_notices_kind_check CHECK (
        kind IN ('payment_failed', 'payment_action_required', 'trial_will_end', 'api_secret_renewed', 'email_change',
                 'account_suspended', 'account_resumed')
    ) NOT VALID;
