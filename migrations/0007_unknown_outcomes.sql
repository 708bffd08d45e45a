ALTER TABLE spool
    -- The message may be at the provider already, because it was being submitted when its process died
    -- or its connection broke: its mailbox is looked into before it is sent again.
    ADD COLUMN outcome_unknown boolean NOT NULL DEFAULT true;
