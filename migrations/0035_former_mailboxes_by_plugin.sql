-- How many mailboxes of each provider were disconnected, for the metrics; in an order, so that no other index is taken.
CREATE INDEX mailboxes_former_by_plugin ON mailboxes (plugin, disconnected_at)
WHERE status <> 'active';
