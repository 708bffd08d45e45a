-- Messages that were refused before a mailbox was chosen for them, so that they have no log row.

-- The last ones of each app.
CREATE TABLE refusals (
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    -- With the moment in front (UUID version 7).
    id uuid NOT NULL,
    door text NOT NULL CHECK (door IN ('rest', 'smtp')),
    reason text NOT NULL,
    -- As far as they could be read.
    from_address text,
    to_address text,
    PRIMARY KEY (app_id, id)
);

CREATE TABLE refusal_counters (
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    hour timestamptz NOT NULL,
    reason text NOT NULL,
    messages bigint NOT NULL,
    PRIMARY KEY (app_id, hour, reason)
);

-- What has aged away.
CREATE INDEX refusals_by_age ON refusals (id);
CREATE INDEX refusal_counters_by_age ON refusal_counters (hour);
