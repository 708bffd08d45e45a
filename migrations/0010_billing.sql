-- Billing: what is known of each subscription, what the provider has told, what is still to be done
-- there, and the notices that follow.

ALTER TABLE subscribers
    -- The one subscription that counts; what is told of another changes nothing.
    ADD COLUMN payprov_subscription_id text,
    -- When the provider made it: an older one never takes its place.
    ADD COLUMN payprov_subscription_created_at timestamptz,
    ADD COLUMN trial_end timestamptz,
    ADD COLUMN current_period_end timestamptz,
    ADD COLUMN cancel_at_period_end boolean NOT NULL DEFAULT false,
    -- As the provider had it last.
    ADD COLUMN billed_quantity bigint,
    -- An invoice whose payment failed: until it is settled the subscription is past due, whatever its
    -- own status says.
    ADD COLUMN failed_invoice_id text,
    -- Goes up before each look at the provider. What an older look saw is not stored over a newer one.
    ADD COLUMN payprov_look bigint NOT NULL DEFAULT 0,
    ADD COLUMN payprov_applied_look bigint NOT NULL DEFAULT 0,
    -- The next look that nobody asks for. One replica that looks puts it off first, so it is also the
    -- lease.
    ADD COLUMN payprov_look_due_at timestamptz,
    -- Until then one call reactivates the subscription, and others are told to wait.
    ADD COLUMN reactivation_lease_until timestamptz;

CREATE UNIQUE INDEX subscribers_payprov_customer_key ON subscribers (payprov_customer_id);
CREATE INDEX subscribers_payprov_look_due ON subscribers (payprov_look_due_at);
-- Who still has to get one.
CREATE INDEX subscribers_without_subscription ON subscribers (id)
WHERE payprov_subscription_id IS NULL;

-- What is to be done at the provider: one row for each subscriber and kind of work, written in the
-- transaction of what makes it necessary, and gone once it is done.
CREATE TABLE billing_jobs (
    -- Goes into the provider's idempotency keys, so that later work of the same kind has others.
    id uuid NOT NULL CONSTRAINT billing_jobs_id_key UNIQUE,
    -- No foreign key: a subscription is ended after its subscriber.
    subscriber_id uuid NOT NULL,
    -- provision: a customer and a subscription; quantity: that of the active mailboxes; end: the
    -- subscription of a subscriber who is gone.
    kind text NOT NULL CHECK (kind IN ('provision', 'quantity', 'end')),
    -- For end: the customer, who goes with all that is billed.
    customer_id text,
    -- Goes up each time that the work becomes necessary: what is asked for while it is done is done
    -- again.
    generation bigint NOT NULL DEFAULT 1,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL,
    -- Until then somebody does it.
    lease_until timestamptz,
    -- For provision: what the first attempt asked for, so that each next one asks for the same.
    quantity bigint,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (subscriber_id, kind)
);

CREATE INDEX billing_jobs_by_due ON billing_jobs (due_at);

-- The provider's events. Their bodies are not kept: what they tell of is fetched anew.
CREATE TABLE payprov_events (
    -- The provider's own id.
    id text PRIMARY KEY,
    type text NOT NULL,
    customer_id text,
    subscription_id text,
    invoice_id text,
    received_at timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('waiting', 'applied', 'ignored', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    -- While it waits: the next attempt, also the lease of whoever makes it.
    due_at timestamptz NOT NULL
);

CREATE INDEX payprov_events_due ON payprov_events (due_at) WHERE state = 'waiting';
CREATE INDEX payprov_events_by_age ON payprov_events (received_at);

-- Mail to subscribers about their subscription, one for each event that calls for one.
CREATE TABLE billing_notices (
    id uuid PRIMARY KEY,
    subscriber_id uuid NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (
        kind IN ('payment_failed', 'payment_action_required', 'trial_will_end')
    ),
    -- The provider's event: however often it comes, its notice goes out once.
    event_id text NOT NULL CONSTRAINT billing_notices_event_key UNIQUE,
    -- What the mail tells, by kind.
    data jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    -- The next attempt, also the lease of whoever makes it; NULL once it was sent or given up.
    due_at timestamptz,
    sent_at timestamptz
);

CREATE INDEX billing_notices_due ON billing_notices (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX billing_notices_by_subscriber ON billing_notices (subscriber_id);
CREATE INDEX billing_notices_by_age ON billing_notices (created_at);
