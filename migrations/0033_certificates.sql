-- Accounts at ACME servers, one for each directory.
CREATE TABLE acme_accounts (
    id uuid PRIMARY KEY,
    directory_url text NOT NULL UNIQUE,
    -- The account's URL and its key, sealed.
    credentials_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Certificates from ACME servers: one for each name and directory, so that replicas of two configurations don't
-- replace each other's.
CREATE TABLE certificates (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    directory_url text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The private key and the chain as PEM, sealed together; NULL until the first one is there.
    pair_sealed bytea,
    not_before timestamptz,
    not_after timestamptz,
    issued_at timestamptz,
    -- Counts the certificates, so that a gateway sees a new one.
    revision bigint NOT NULL DEFAULT 0,
    -- When it is ordered next, by the database's clock.
    due_at timestamptz NOT NULL DEFAULT now(),
    last_attempt_at timestamptz,
    -- Attempts in a row that failed, and why the last one did.
    failures integer NOT NULL DEFAULT 0,
    last_error text,
    -- Counts the attempts: whoever has an earlier one writes nothing any more.
    claim bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    UNIQUE (name, directory_url)
);

-- What ACME servers may ask for at the moment, one for each certificate; any gateway answers it.
CREATE TABLE acme_challenges (
    certificate_id uuid PRIMARY KEY REFERENCES certificates ON DELETE CASCADE,
    token text NOT NULL,
    key_authorization text NOT NULL,
    expires_at timestamptz NOT NULL
);
