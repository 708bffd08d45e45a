-- What logs and statistics are read by: counters on three levels, and one index for whatever is filtered.

ALTER TABLE email_counters RENAME TO email_counters_by_hour;

-- Messages of an app, and once more of its subscriber, so that no report adds up what an owner has in
-- rows, hours or apps. Hours and days go with the log (days stay for the statistics' thirty); months stay.
CREATE TABLE email_counters (
    -- An app or a subscriber.
    owner_id uuid NOT NULL,
    unit text NOT NULL CHECK (unit IN ('hour', 'day', 'month')),
    -- When the hour, day or month (UTC) begins in which the messages were first attempted.
    start timestamptz NOT NULL,
    plugin_a_sent bigint NOT NULL,
    plugin_a_failed_temp bigint NOT NULL,
    plugin_a_failed_perm bigint NOT NULL,
    plugin_b_sent bigint NOT NULL,
    plugin_b_failed_temp bigint NOT NULL,
    plugin_b_failed_perm bigint NOT NULL,
    PRIMARY KEY (owner_id, unit, start)
) WITH (fillfactor = 70);

-- What is removed with the log.
CREATE INDEX email_counters_by_age ON email_counters (start) WHERE unit <> 'month';

-- What the counters above don't hold yet. The journal only ever adds rows, since with a row that is
-- counted up in place the replicas' commits would wait for each other; a worker adds them up.
CREATE TABLE email_counter_changes (
    app_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    plugin text NOT NULL,
    status text NOT NULL CHECK (status IN ('sent', 'failed_temp', 'failed_perm')),
    -- More, or where negative less.
    messages bigint NOT NULL
);

INSERT INTO email_counter_changes SELECT * FROM email_counters_by_hour WHERE messages <> 0;

DROP TABLE email_counters_by_hour;

ALTER TABLE email_logs
    -- Whose app it is; NULL when the app was deleted before the message ended.
    ADD COLUMN subscriber_id uuid;

UPDATE email_logs SET subscriber_id = apps.subscriber_id FROM apps WHERE apps.id = app_id;

-- Any filter is a few whole ranges of these, each in the order of time.
DROP INDEX email_logs_by_app;
CREATE INDEX email_logs_by_app ON email_logs (app_id, plugin, status, id);
CREATE INDEX email_logs_by_subscriber ON email_logs (subscriber_id, plugin, status, id);

-- How far back the log goes: older days are dropped, or about to be.
CREATE TABLE log_retention (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    kept_since timestamptz NOT NULL
);

INSERT INTO log_retention (kept_since) VALUES ('epoch');

ALTER TABLE deleted_apps
    -- Whose it was: rows that are still to be removed are shown to nobody.
    ADD COLUMN subscriber_id uuid;

CREATE INDEX deleted_apps_by_subscriber ON deleted_apps (subscriber_id);
