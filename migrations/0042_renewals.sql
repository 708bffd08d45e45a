-- Reactivations that can't charge twice, and subscribers who are charged twice all the same.

ALTER TABLE subscribers
    -- The ended subscription that the last request for a new one was to follow. With the number it makes the
    -- provider's idempotency key, so that a request that arrives late is known there.
    ADD COLUMN renewal_of text,
    -- Goes up once the provider has certainly refused a request, or some time after the last one of this number.
    ADD COLUMN renewal_number integer NOT NULL DEFAULT 0,
    -- What all requests of this number ask for: the provider ties a key to one request.
    ADD COLUMN renewal_quantity bigint,
    -- When the last one left; NULL once the provider has refused it.
    ADD COLUMN renewal_at timestamptz,
    -- Living subscriptions of the customer beside the one that counts, as last fetched; NULL: there are none.
    ADD COLUMN payprov_other_subscription_ids text[];

CREATE INDEX subscribers_doubly_charged ON subscribers (id)
WHERE payprov_other_subscription_ids IS NOT NULL;
