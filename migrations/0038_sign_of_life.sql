-- Whether the database's clock is trusted, and so whether things are deleted by their age.
CREATE TABLE sign_of_life (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- When a gateway left the last one, each minute, by the database's clock.
    observed_at timestamptz NOT NULL,
    -- The last time that was trusted.
    trusted_at timestamptz NOT NULL,
    -- Since when deletions are held back, as the clock had moved on by more than a week; NULL: they aren't.
    held_since timestamptz
) WITH (fillfactor = 50);

INSERT INTO sign_of_life (observed_at, trusted_at) VALUES (clock_timestamp(), clock_timestamp());
