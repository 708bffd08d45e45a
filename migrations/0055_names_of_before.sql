-- Whether a process stores names of send keys as names of these alone (see 0051). The release before doesn't.
ALTER TABLE gateways ADD COLUMN has_names_of_keys boolean NOT NULL DEFAULT false;

-- Names that the release before has stored: gone after a day, and with them what is in here.
CREATE INDEX idempotency_keys_of_before ON idempotency_keys (created_at) WHERE NOT is_of_key;
