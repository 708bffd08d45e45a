-- The process that refreshes a mailbox's token: if it dies, another one asks again at once, while the provider still takes
-- the token that it has replaced.
ALTER TABLE mailboxes ADD COLUMN refresh_gateway_id uuid;
CREATE INDEX mailboxes_refreshing ON mailboxes (refresh_gateway_id) WHERE refresh_gateway_id IS NOT NULL;
