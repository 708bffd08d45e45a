-- For what is waited for anew when the database's clock was set; and nothing has looked for stored messages by their
-- Message-ID since the log holds them too.
CREATE INDEX spool_left_by ON spool (left_by) WHERE left_by IS NOT NULL;
DROP INDEX spool_deferred_by_message;
