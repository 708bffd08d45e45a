-- How much waits in the spool for each app: messages whose bytes are stored until their next attempt, so
-- that a quota costs no scan. Triggers count, so that no statement of any release can forget to.

CREATE TABLE spool_usage (
    app_id uuid PRIMARY KEY,
    messages bigint NOT NULL,
    -- Sizes of the messages as they leave.
    bytes bigint NOT NULL
) WITH (fillfactor = 70);

-- The fullest, for the metrics.
CREATE INDEX spool_usage_by_messages ON spool_usage (messages);
CREATE INDEX spool_usage_by_bytes ON spool_usage (bytes);

-- What the table above doesn't hold yet. Rows are only added, since with a row that is counted up in place
-- the messages of one app, and the journal's batches of all apps, would wait for each other; a worker adds
-- them up.
CREATE TABLE spool_usage_changes (
    app_id uuid NOT NULL,
    -- More, or where negative less.
    messages bigint NOT NULL,
    bytes bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

CREATE INDEX spool_usage_changes_by_app ON spool_usage_changes (app_id);

CREATE FUNCTION note_spool_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO spool_usage_changes VALUES (OLD.app_id, -1, -OLD.size_bytes);
    ELSE
        INSERT INTO spool_usage_changes VALUES (NEW.app_id, 1, NEW.size_bytes);
    END IF;
    RETURN NULL;
END
$$;

-- A message is logged as failed_temp with the statement that stores it for its next attempt. One that leaves
-- at its first attempt never is, and costs no more than the condition.
CREATE TRIGGER spool_stored AFTER UPDATE OF is_logged ON spool
FOR EACH ROW WHEN (NEW.is_logged AND NOT OLD.is_logged) EXECUTE FUNCTION note_spool_usage();
CREATE TRIGGER spool_stored_gone AFTER DELETE ON spool
FOR EACH ROW WHEN (OLD.is_logged) EXECUTE FUNCTION note_spool_usage();

-- Behind the triggers, whose lock keeps the spool as it is.
INSERT INTO spool_usage (app_id, messages, bytes)
SELECT app_id, count(*), sum(size_bytes) FROM spool WHERE is_logged GROUP BY app_id;
