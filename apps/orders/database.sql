-- Who waits in which order: a service that lost its server first; else in turns between tenants, the one that waits longest
-- without having been served first, each tenant's own entries as they came. Nobody is overtaken by a smaller order: only the
-- first is served. Orders under a reservation wait for its own servers, beside the pool.
CREATE OR REPLACE FUNCTION public.orders_queue_in_turn()
RETURNS TABLE (id bigint, place bigint, ahead bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH waiting AS (
        SELECT q.*,
               row_number() OVER (PARTITION BY q.site, q.resource_class, q.reservation, q.tenant, q.service IS NULL
                                  ORDER BY q.entered_at, q.id) AS turn,
               greatest(
                   min(q.entered_at) OVER (PARTITION BY q.site, q.resource_class, q.reservation, q.tenant),
                   (SELECT max(s.left_at) FROM orders_queueentry s
                    WHERE s.site = q.site AND s.resource_class = q.resource_class AND s.tenant = q.tenant
                      AND s.is_served AND s.reservation IS NOT DISTINCT FROM q.reservation)
               ) AS since
        FROM orders_queueentry q WHERE q.left_at IS NULL
    )
    SELECT w.id, row_number() OVER line, sum(w.quantity) OVER (line ROWS UNBOUNDED PRECEDING)
    FROM waiting w
    WINDOW line AS (PARTITION BY w.site, w.resource_class, w.reservation
                    ORDER BY w.service IS NULL, w.turn, w.since, w.entered_at, w.id)
$$;
REVOKE ALL ON FUNCTION public.orders_queue_in_turn() FROM PUBLIC;

-- What a tenant may know of a queue it shares: how many wait, its own place, how many servers are wanted up to and with it,
-- and how long others waited lately. No row of anybody else.
CREATE OR REPLACE FUNCTION public.orders_queue_length(site_id uuid, wanted_class text) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT count(*)::integer FROM orders_queueentry q
    WHERE q.left_at IS NULL AND q.site = site_id AND q.resource_class = wanted_class AND q.reservation IS NULL
$$;

DROP FUNCTION IF EXISTS public.orders_queue_place(uuid);
CREATE OR REPLACE FUNCTION public.orders_queue_standing(order_id uuid)
RETURNS TABLE (place integer, ahead integer, entered_at timestamptz, expires_at timestamptz, waits bigint, usual interval)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT t.place::integer, t.ahead::integer, mine.entered_at, mine.expires_at, past.waits, past.usual
    FROM orders_queueentry mine
    JOIN public.orders_queue_in_turn() t ON t.id = mine.id
    CROSS JOIN LATERAL (
        SELECT count(*) AS waits,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY recent.waited) AS usual
        FROM (
            SELECT s.left_at - s.entered_at AS waited FROM orders_queueentry s
            WHERE s.site = mine.site AND s.resource_class = mine.resource_class AND s.is_served
              AND s.reservation IS NULL AND s.service IS NULL
            ORDER BY s.left_at DESC LIMIT 20
        ) recent
    ) past
    WHERE mine."order" = order_id AND mine.left_at IS NULL
      AND current_setting('neo.tenant', true) IN ('platform', mine.tenant::text)
    ORDER BY t.place
    LIMIT 1
$$;

REVOKE ALL ON FUNCTION public.orders_queue_length(uuid, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION public.orders_queue_standing(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.orders_queue_length(uuid, text) TO neo_app;
GRANT EXECUTE ON FUNCTION public.orders_queue_standing(uuid) TO neo_app;

-- The line as operators see it, and as it is served; nothing for a tenant.
CREATE OR REPLACE FUNCTION public.orders_queue_line() RETURNS TABLE (id bigint, place bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT t.id, t.place FROM public.orders_queue_in_turn() t
    WHERE current_setting('neo.tenant', true) = 'platform'
$$;
REVOKE ALL ON FUNCTION public.orders_queue_line() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.orders_queue_line() TO neo_app;
