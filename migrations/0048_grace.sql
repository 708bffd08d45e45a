-- Until when a subscriber whose payment has failed may send all the same; NULL: not at all.
ALTER TABLE subscribers ADD COLUMN grace_ends_at timestamptz;
