-- What a tenant may know of a queue it shares: how many wait, and its own place. No row of anybody else.
CREATE OR REPLACE FUNCTION public.orders_queue_length(site_id uuid, wanted_class text) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT count(*)::integer FROM orders_queueentry q
    WHERE q.left_at IS NULL AND q.site = site_id AND q.resource_class = wanted_class
$$;

CREATE OR REPLACE FUNCTION public.orders_queue_place(order_id uuid) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT coalesce(min(places.place), 0)::integer FROM (
        SELECT count(*) AS place FROM orders_queueentry mine
        JOIN orders_queueentry q ON q.site = mine.site AND q.resource_class = mine.resource_class
            AND q.left_at IS NULL AND (q.service IS NULL, q.entered_at, q.id)
                <= (mine.service IS NULL, mine.entered_at, mine.id)
        WHERE mine."order" = order_id AND mine.left_at IS NULL
            AND current_setting('neo.tenant', true) IN ('platform', mine.tenant::text)
        GROUP BY mine.id
    ) places
$$;

REVOKE ALL ON FUNCTION public.orders_queue_length(uuid, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION public.orders_queue_place(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.orders_queue_length(uuid, text) TO neo_app;
GRANT EXECUTE ON FUNCTION public.orders_queue_place(uuid) TO neo_app;
