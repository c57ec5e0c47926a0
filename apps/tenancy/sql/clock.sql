-- The only clock. `neo.clock_offset` (an interval) is set by tests and rehearsals, never in production.
CREATE OR REPLACE FUNCTION public.neo_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT clock_timestamp() + coalesce(nullif(current_setting('neo.clock_offset', true), ''), '0')::interval $$;

-- Owner's own bookkeeping: the script that makes a tenant's schema, and what was last applied.
CREATE TABLE IF NOT EXISTS public.tenancy_script (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version text NOT NULL,
    rules text NOT NULL,
    body text NOT NULL
);
