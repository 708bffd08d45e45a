-- How a message was submitted, for its timeline. NULL: by a process of a release that didn't write it.
ALTER TABLE spool ADD COLUMN door text;
ALTER TABLE email_logs ADD COLUMN door text;
