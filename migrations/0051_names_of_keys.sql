-- Whether the name is of one send key, as this release has it. The release before knew names of the app alone: one that
-- it stored may be any of its keys', and stands for that message until it is forgotten, within a day.
ALTER TABLE idempotency_keys ADD COLUMN is_of_key boolean NOT NULL DEFAULT false;
