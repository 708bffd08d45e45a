-- Since when the API secret is the current one; NULL: since the sign-up. What was authenticated by an earlier one and is
-- still under way changes nothing any more.
ALTER TABLE subscribers ADD COLUMN credentials_since timestamptz;
