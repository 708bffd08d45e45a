-- Processes that serve, and what each has in hand. A lease is held against the database's clock alone, so no
-- replica's clock is ever compared with another's.

CREATE TABLE gateways (
    -- One for each life of a process.
    id uuid PRIMARY KEY,
    started_at timestamptz NOT NULL,
    -- Confirmed again and again; past it another process may end the row, and takes up what it had.
    lease_until timestamptz NOT NULL,
    -- Its process writes nothing more from then on. The row goes when nothing is left in its hands.
    ended_at timestamptz
) WITH (fillfactor = 50);

ALTER TABLE spool
    -- Who has the message in hand. A row that is open and has none is looked at again at lease_until; those of
    -- the release before hold their rows by lease_until alone.
    ADD COLUMN gateway_id uuid,
    -- The key that its caller gave, so that whoever finds that nothing was sent sets it free.
    ADD COLUMN idempotency_key text;

-- The lease of whoever is at it, which was told by due_at and the replicas' clocks alone.
ALTER TABLE billing_notices ADD COLUMN lease_until timestamptz;
ALTER TABLE payprov_events ADD COLUMN lease_until timestamptz;
