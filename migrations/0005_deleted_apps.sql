-- Apps that are gone and whose log rows are still to be removed, in batches that block nobody. A row
-- stays for a while after the last one, for messages that were on their way when their app went.

CREATE TABLE deleted_apps (
    app_id uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL
);
