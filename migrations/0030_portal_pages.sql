-- What the portal's overview and its page of billing show.

ALTER TABLE subscribers
    -- When the payment provider's state was stored last; NULL: never, or by a release before this one.
    ADD COLUMN payprov_looked_at timestamptz;

-- The mailboxes that were disconnected last.
CREATE INDEX mailboxes_disconnected ON mailboxes (app_id, disconnected_at) WHERE status <> 'active';
