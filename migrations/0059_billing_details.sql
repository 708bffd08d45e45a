-- What the payment provider said of a subscription beside its status, for the portal's pages: the price of one mailbox,
-- the payment method's brand, last digits and expiry, what is due since when, and who gets the invoices. Nothing is
-- decided by it, so its fields may change. NULL: it wasn't fetched yet.
ALTER TABLE subscribers
    ADD COLUMN payprov_details jsonb;
