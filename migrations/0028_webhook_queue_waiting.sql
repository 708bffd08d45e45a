-- How much waits for an endpoint. A delivery that succeeds at its first attempt never waits, so it costs nothing here.
-- In a migration of its own: while the index is built, new events wait for it, and nothing else.
CREATE INDEX webhook_queue_waiting ON webhook_queue (endpoint_id) WHERE state = 'waiting';
