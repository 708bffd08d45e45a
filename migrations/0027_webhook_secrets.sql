-- Signing secrets that are replaced, and deliveries that are made again.

-- The secret before the current one, sealed for the same place: until it expires, both sign.
ALTER TABLE webhook_configs
    ADD COLUMN previous_secret_sealed bytea,
    ADD COLUMN previous_secret_expires_at timestamptz;
ALTER TABLE apps
    ADD COLUMN previous_webhook_secret_sealed bytea,
    ADD COLUMN previous_webhook_secret_expires_at timestamptz;

-- Secrets that are to be removed; there are few of them.
CREATE INDEX webhook_configs_previous_secret ON webhook_configs (previous_secret_expires_at)
WHERE previous_secret_expires_at IS NOT NULL;
CREATE INDEX apps_previous_webhook_secret ON apps (previous_webhook_secret_expires_at)
WHERE previous_webhook_secret_expires_at IS NOT NULL;

-- What an endpoint signed with when it was deleted, for what is still to be delivered to it: the queue's rows know
-- only the secret that was current when they were written. No foreign keys, for the same reason.
CREATE TABLE deleted_webhook_endpoints (
    -- The configuration's id, or the app's for its webhook_url.
    endpoint_id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    secret_sealed bytea NOT NULL,
    previous_secret_sealed bytea,
    previous_secret_expires_at timestamptz,
    deleted_at timestamptz NOT NULL
);

CREATE INDEX deleted_webhook_endpoints_by_app ON deleted_webhook_endpoints (app_id);
CREATE INDEX deleted_webhook_endpoints_by_age ON deleted_webhook_endpoints (deleted_at);
CREATE INDEX deleted_webhook_endpoints_previous_secret
ON deleted_webhook_endpoints (previous_secret_expires_at) WHERE previous_secret_expires_at IS NOT NULL;

-- By triggers, so that those are noted too that go with their apps, and those that an older release deletes.
CREATE FUNCTION webhook_config_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deleted_webhook_endpoints
        (endpoint_id, app_id, secret_sealed, previous_secret_sealed, previous_secret_expires_at, deleted_at)
    VALUES (OLD.id, OLD.app_id, OLD.secret_sealed, OLD.previous_secret_sealed,
            OLD.previous_secret_expires_at, now())
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION app_webhook_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deleted_webhook_endpoints
        (endpoint_id, app_id, secret_sealed, previous_secret_sealed, previous_secret_expires_at, deleted_at)
    VALUES (OLD.id, OLD.id, OLD.webhook_secret_sealed, OLD.previous_webhook_secret_sealed,
            OLD.previous_webhook_secret_expires_at, now())
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER webhook_configs_go AFTER DELETE ON webhook_configs
FOR EACH ROW EXECUTE FUNCTION webhook_config_deleted();
CREATE TRIGGER app_webhooks_go AFTER DELETE ON apps
FOR EACH ROW EXECUTE FUNCTION app_webhook_deleted();
