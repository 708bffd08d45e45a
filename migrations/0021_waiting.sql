-- Messages that wait for nothing but their app's subscription: they are due as soon as it lets them through.
ALTER TABLE spool ADD COLUMN awaits_subscription boolean NOT NULL DEFAULT false;

CREATE INDEX spool_awaits_subscription ON spool (app_id) WHERE awaits_subscription;
