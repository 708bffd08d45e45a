-- Outgoing webhooks: who listens, what there is to tell, what is still to be delivered, and what was.

-- The endpoints that a subscriber sets up for an app, beside the app's own webhook_url. An endpoint's id
-- elsewhere is the configuration's, or the app's for its webhook_url.
CREATE TABLE webhook_configs (
    -- Shown as wconf_….
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    url text NOT NULL,
    -- Names of the event catalogue.
    events text[] NOT NULL,
    is_active boolean NOT NULL,
    secret_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE INDEX webhook_configs_by_app ON webhook_configs (app_id, id);

ALTER TABLE webhook_messages RENAME TO webhook_messages_before;
DROP INDEX webhook_messages_by_app;
ALTER TABLE webhook_messages_before RENAME CONSTRAINT webhook_messages_pkey TO webhook_messages_before_pkey;

-- Events that somebody listens to, one row each, in partitions of one day (UTC) by the time in their
-- UUIDv7 id, which age as the log's do. Rows never change.
CREATE TABLE webhook_messages (
    -- No foreign key: what tells of an app's end outlives the app.
    app_id uuid NOT NULL,
    -- The webhook-id, the same for all endpoints and attempts. Shown as msg_….
    id uuid NOT NULL,
    event text NOT NULL,
    -- The log row that it tells of.
    log_id uuid,
    -- To the byte: what is signed is what is sent.
    body text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (app_id, id)
) PARTITION BY RANGE (id);

-- What is still to be delivered: a row for each message and endpoint.
CREATE TABLE webhook_queue (
    message_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    app_id uuid NOT NULL,
    log_id uuid,
    event text NOT NULL,
    -- Where it goes and what signs it, as they were when it happened. They stand in for what the app or
    -- the configuration says now, once it is gone.
    url text NOT NULL,
    secret_sealed bytea NOT NULL,
    -- Attempts that were made and recorded.
    attempts integer NOT NULL DEFAULT 0,
    -- ready: whoever has a place takes it. waiting: until due_at. leased: somebody delivers it, and has
    -- until due_at to say what came of it.
    state text NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'waiting', 'leased')),
    due_at timestamptz NOT NULL,
    PRIMARY KEY (message_id, endpoint_id)
-- Rows come and go by the thousands, and the indexes must not fill up with those that have gone.
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);

-- Which endpoints have something ready, and what.
CREATE INDEX webhook_queue_ready ON webhook_queue (endpoint_id, due_at) WHERE state = 'ready';
-- What gets ready again.
CREATE INDEX webhook_queue_later ON webhook_queue (due_at) WHERE state <> 'ready';

-- Attempts to deliver, one row each, in partitions by the day of their message, so that they go when it
-- goes.
CREATE TABLE webhook_deliveries (
    message_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    -- From 1 on.
    attempt_number integer NOT NULL,
    -- Shown as wdel_…; its time is that of the attempt.
    id uuid NOT NULL,
    app_id uuid NOT NULL,
    log_id uuid,
    event text NOT NULL,
    -- NULL: no answer came.
    http_status integer,
    -- At most 16 KiB of it.
    response_body text NOT NULL,
    -- When the attempt began.
    delivered_at timestamptz NOT NULL,
    duration_ms bigint NOT NULL,
    success boolean NOT NULL,
    error_message text,
    PRIMARY KEY (message_id, endpoint_id, attempt_number)
) PARTITION BY RANGE (message_id);

-- An endpoint's attempts, newest first; also the way to one of them.
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, id);
-- Those that failed, which are few among many.
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (endpoint_id, id) WHERE NOT success;
CREATE INDEX webhook_deliveries_by_log ON webhook_deliveries (log_id) WHERE log_id IS NOT NULL;

-- Attempts by the hour (UTC) of their message, as the partitions are by its day, so that totals agree with
-- what can be listed.
CREATE TABLE webhook_counters (
    endpoint_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    event text NOT NULL,
    success boolean NOT NULL,
    app_id uuid NOT NULL,
    deliveries bigint NOT NULL,
    PRIMARY KEY (endpoint_id, hour, event, success)
) WITH (fillfactor = 50);

CREATE INDEX webhook_counters_by_app ON webhook_counters (app_id);
CREATE INDEX webhook_counters_by_age ON webhook_counters (hour);

-- What was to be told so far goes on its way.
DO $$
DECLARE
    day date;
    part text;
BEGIN
    FOR day IN
        SELECT DISTINCT (to_timestamp(('x' || lpad(substr(replace(id::text, '-', ''), 1, 12), 16, '0'))::bit(64)::bigint
                                      / 1000.0) AT TIME ZONE 'UTC')::date
        FROM webhook_messages_before
    LOOP
        FOREACH part IN ARRAY ARRAY['webhook_messages', 'webhook_deliveries'] LOOP
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                part || '_' || to_char(day, 'YYYYMMDD'), part,
                rpad(lpad(to_hex((extract(epoch FROM day) * 1000)::bigint), 12, '0'), 32, '0')::uuid,
                rpad(lpad(to_hex((extract(epoch FROM day + 1) * 1000)::bigint), 12, '0'), 32, '0')::uuid);
        END LOOP;
    END LOOP;
END
$$;

INSERT INTO webhook_messages (app_id, id, event, log_id, body, created_at)
SELECT app_id, id, event, log_id, body, created_at FROM webhook_messages_before;

INSERT INTO webhook_queue
    (message_id, endpoint_id, app_id, log_id, event, url, secret_sealed, due_at)
SELECT id, app_id, app_id, log_id, event, url, secret_sealed, created_at FROM webhook_messages_before;

DROP TABLE webhook_messages_before;
