-- Since when a connect session has vouched for a user's mailbox. It outlives that mailbox: links that anybody can write
-- connect no other address for the user until the app releases it. NULL: never, or released since.
ALTER TABLE end_users ADD COLUMN vouched_at timestamptz;
UPDATE end_users SET vouched_at = now()
WHERE EXISTS (SELECT FROM mailboxes WHERE mailboxes.user_key = end_users.user_key AND by_session);
