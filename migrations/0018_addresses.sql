-- The further addresses that mailboxes may send as, as their providers tell them.

-- A mailbox's own address stands in its own row; these are the others.
CREATE TABLE mailbox_addresses (
    credential_id uuid NOT NULL REFERENCES mailboxes (id) ON DELETE CASCADE,
    -- The mailbox's own: a From header is looked up by the app and the address.
    app_id uuid NOT NULL,
    -- As the provider spells it.
    address text NOT NULL,
    -- The address in lower case, as in mailboxes.
    address_lookup text NOT NULL,
    -- Its place in the provider's own order.
    place smallint NOT NULL,
    PRIMARY KEY (credential_id, address_lookup)
);

CREATE INDEX mailbox_addresses_by_address ON mailbox_addresses (app_id, address_lookup);

ALTER TABLE mailboxes
    -- When the provider is asked for them again. One replica that asks puts it off first, so it is also the lease.
    -- Mailboxes that are there, and those that an older release connects, are due at once.
    ADD COLUMN addresses_due_at timestamptz DEFAULT now(),
    -- When it was last asked, or is being asked: whoever asked earlier has nothing to store any more.
    ADD COLUMN addresses_asked_at timestamptz;

-- Whose own address another mailbox's alias is, connected or not.
CREATE INDEX mailboxes_by_address ON mailboxes (app_id, email_lookup);

CREATE INDEX mailboxes_addresses_due ON mailboxes (addresses_due_at) WHERE status = 'active';
