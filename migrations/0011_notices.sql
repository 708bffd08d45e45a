-- What becomes of the notices.

ALTER TABLE billing_notices
    -- Set right before the mail leaves, and taken back where the relay surely has not got it. One whose
    -- sender died meanwhile may have arrived, and is not sent again.
    ADD COLUMN leaving_at timestamptz,
    -- sent; skipped: there is no relay; given_up: the relay refused it, or could not be reached for days;
    -- unknown: it may have arrived. NULL while it waits.
    ADD COLUMN outcome text CHECK (outcome IN ('sent', 'skipped', 'given_up', 'unknown'));
