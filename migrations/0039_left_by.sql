-- When a message whose outcome is unknown can have been handed to its provider at the latest: that it is missing from the
-- sent mail counts only once the provider must have finished with it.
ALTER TABLE spool ADD COLUMN left_by timestamptz;
