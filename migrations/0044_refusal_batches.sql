-- Refusals that were written together, so that they aren't counted again when the answer to their commit was lost.
CREATE TABLE refusal_batches (
    -- With the moment in front (UUID version 7).
    id uuid PRIMARY KEY
);
