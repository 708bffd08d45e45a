-- Links to connect mailboxes by are sealed and hold all that they are about: what is stored is that one was used.

-- Refuses links that nobody has signed for a user: false for the apps that are there.
ALTER TABLE apps ADD COLUMN require_connect_session boolean NOT NULL DEFAULT false;

-- Connected by a connect session, so by the app's own will: such a mailbox is chosen before those of links that
-- anybody can write.
ALTER TABLE mailboxes ADD COLUMN by_session boolean NOT NULL DEFAULT false;

CREATE INDEX mailboxes_chosen_by_app ON mailboxes (app_id, by_session DESC, connected_at, id)
WHERE status = 'active';

-- Connect sessions, and states of the way to a provider and back (RFC 6749 §10.12), that were used.
CREATE TABLE used_links (
    -- The random one inside the sealed link.
    id uuid PRIMARY KEY,
    -- From then on the link is refused by its own end.
    expires_at timestamptz NOT NULL
);

CREATE INDEX used_links_by_end ON used_links (expires_at);
