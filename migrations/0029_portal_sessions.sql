-- Who is signed in to the portal.

CREATE TABLE portal_sessions (
    -- UUID version 7.
    id uuid PRIMARY KEY,
    subscriber_id uuid NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    -- Of what the cookie holds, keyed like those of API secrets.
    digest bytea NOT NULL UNIQUE,
    -- What was shown to sign in.
    started_by text NOT NULL CHECK (started_by IN ('api_secret', 'link', 'minted')),
    created_at timestamptz NOT NULL,
    -- To the minute: most requests write nothing.
    last_used_at timestamptz NOT NULL,
    -- However much it is used.
    expires_at timestamptz NOT NULL,
    -- The browser's own words, cut.
    user_agent text NOT NULL,
    -- Where it was begun.
    address text NOT NULL
);

CREATE INDEX portal_sessions_by_subscriber ON portal_sessions (subscriber_id, id);
CREATE INDEX portal_sessions_by_end ON portal_sessions (expires_at);

-- Addresses that sign in once.
CREATE TABLE portal_links (
    digest bytea PRIMARY KEY,
    subscriber_id uuid NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    -- link: mailed to the subscriber; minted: asked for with the API secret.
    kind text NOT NULL CHECK (kind IN ('link', 'minted')),
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);

CREATE INDEX portal_links_by_subscriber ON portal_links (subscriber_id, expires_at);
CREATE INDEX portal_links_by_end ON portal_links (expires_at);

-- Who asks for a link says an address.
CREATE INDEX subscribers_by_email ON subscribers (lower(email COLLATE "C"), id);
