-- A mailbox whose reading the provider refuses, in its words, and since when. NULL while it is read, or was never.
ALTER TABLE mailboxes
    ADD COLUMN reading_refused text,
    ADD COLUMN reading_refused_at timestamptz;
