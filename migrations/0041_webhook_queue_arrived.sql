-- What has become ready since a moment, so that a poll need not step over what was delivered before: as long as an older
-- snapshot is held somewhere, the index keeps an entry for each delivery that there was. The second condition always
-- holds: it keeps the planner from using this index for one endpoint's deliveries, for which there is another.
CREATE INDEX webhook_queue_arrived ON webhook_queue (due_at) WHERE state = 'ready' AND attempts >= 0;
