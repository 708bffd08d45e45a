-- Connect sessions that were created earlier connect nothing any more; NULL: none was revoked.
ALTER TABLE apps ADD COLUMN connect_sessions_from timestamptz;

-- A renewed API secret is told by mail too. The wider list holds for all rows that there are.
ALTER TABLE billing_notices
    DROP CONSTRAINT billing_notices_kind_check,
    ADD CONSTRAINT billing_notices_kind_check CHECK (
        kind IN ('payment_failed', 'payment_action_required', 'trial_will_end', 'api_secret_renewed')
    ) NOT VALID;
