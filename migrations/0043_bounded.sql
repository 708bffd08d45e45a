-- What an owner has of old months, in the order of time: they become one row.
CREATE INDEX email_counters_months_by_age ON email_counters (start) WHERE unit = 'month';
