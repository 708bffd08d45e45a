-- A subscriber's disconnected mailboxes by address, which are few among many.
CREATE INDEX mailboxes_former_by_address ON mailboxes (app_id, email_lookup)
WHERE status <> 'active';
