-- The address that somebody has shown to read, by a mailed link. It counts while it is still `email`: a gateway of the
-- release before changes that one alone.
ALTER TABLE subscribers ADD COLUMN confirmed_email text;

-- Changes of a subscriber's address: waiting for their confirmation, or made so recently that they can be undone.
CREATE TABLE email_changes (
    -- UUID version 7.
    id uuid PRIMARY KEY,
    -- In the order in which they were asked for, whatever clocks the gateways have.
    number bigint GENERATED ALWAYS AS IDENTITY,
    subscriber_id uuid NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    former_email text NOT NULL,
    -- Whether that one was confirmed.
    former_is_confirmed boolean NOT NULL,
    email text NOT NULL,
    created_at timestamptz NOT NULL,
    -- From then on the new address is the account's.
    confirmed_at timestamptz,
    -- Whether who reads the former address can take it back: it was the account's for long enough.
    can_be_undone boolean NOT NULL DEFAULT false,
    -- Replaced by another, stopped or undone.
    ended_at timestamptz
);

CREATE INDEX email_changes_by_subscriber ON email_changes (subscriber_id, number);
CREATE INDEX email_changes_by_age ON email_changes (created_at);

-- Who has come by a link to an address that is new has to show the API secret where others needn't.
ALTER TABLE portal_sessions ADD COLUMN needs_secret boolean NOT NULL DEFAULT false;

-- Changes of the address are told by mail. The wider list holds for all rows that there are.
ALTER TABLE billing_notices
    DROP CONSTRAINT billing_notices_kind_check,
    ADD CONSTRAINT billing_notices_kind_check CHECK (
        kind IN ('payment_failed', 'payment_action_required', 'trial_will_end', 'api_secret_renewed', 'email_change')
    ) NOT VALID;
