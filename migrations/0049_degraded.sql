-- Whether the app was told last that the mailbox isn't read (`mailbox.degraded`), and when it was told either way.
ALTER TABLE mailboxes
    ADD COLUMN is_degraded boolean NOT NULL DEFAULT false,
    ADD COLUMN reading_told_at timestamptz;
UPDATE mailboxes SET is_degraded = true, reading_told_at = reading_refused_at WHERE reading_refused_at IS NOT NULL;
