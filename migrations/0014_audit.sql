-- The audit trail: who changed which key, address, mailbox or subscription, when, and from where.

CREATE TABLE audit_entries (
    -- Shown as audit_…; its time is that of the change, and what retention goes by.
    id uuid PRIMARY KEY,
    -- No foreign keys: entries outlive the app that they tell of. NULL: the gateway as a whole.
    subscriber_id uuid,
    app_id uuid,
    -- As the app was called at the time, for apps that are gone.
    app_slug text,
    action text NOT NULL,
    actor text NOT NULL CHECK (actor IN ('subscriber', 'user', 'provider', 'operator')),
    -- The client's; NULL where no client asked for the change.
    address text,
    -- cred_… or wconf_….
    target text,
    -- An object; its texts are cut.
    details jsonb NOT NULL
);

-- Any filter is a few whole ranges of these, each in the order of time.
CREATE INDEX audit_entries_by_subscriber ON audit_entries (subscriber_id, action, id);
CREATE INDEX audit_entries_by_app ON audit_entries (subscriber_id, app_id, action, id);
-- Which app had this slug last.
CREATE INDEX audit_entries_of_deleted_apps ON audit_entries (subscriber_id, app_slug, id)
WHERE action = 'app.deleted';
