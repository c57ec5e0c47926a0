-- Questions that must see across tenants. They answer with nodes, counts and addresses, never with a tenant's data.

-- The nodes that are free at an instant (now unless said) for a plan, and until when: the next hold of somebody else, or
-- null. The only definition of "free": availability, orders and reservations all ask here.
-- Now, a node is free as it stands. Later, it may be in use or in cleaning until then, and a reservation that ends before is
-- followed by the site's turn-around (an on-demand hold has it inside).
DROP FUNCTION IF EXISTS public.inventory_availability();
DROP FUNCTION IF EXISTS public.inventory_free_nodes(uuid, text, jsonb);
CREATE OR REPLACE FUNCTION public.inventory_free_nodes(
    wanted_site uuid, wanted_class text, wanted_traits jsonb,
    wanted_plan text DEFAULT 'on_demand', wanted_at timestamptz DEFAULT NULL
)
RETURNS TABLE (node uuid, gpus integer, free_until timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    WITH asked AS MATERIALIZED (
        SELECT coalesce(wanted_at, public.neo_now()) AS at,
               make_interval(mins => s.turn_around_minutes) AS turn_around,
               coalesce(wanted_at <= public.neo_now() + make_interval(mins => s.turn_around_minutes), true) AS is_now
        FROM public.inventory_site s
        WHERE s.id = wanted_site AND s.status = 'active' AND s.cleans_automatically
    )
    SELECT n.id, n.gpu_count, held.next_at
    FROM asked
    CROSS JOIN public.inventory_node n
    CROSS JOIN LATERAL (
        SELECT min(lower(a.during)) FILTER (WHERE lower(a.during) > asked.at) AS next_at,
               coalesce(bool_or(
                   a.during @> asked.at
                   OR wanted_at IS NOT NULL AND a.reservation IS NOT NULL
                      AND lower(a.during) <= asked.at AND upper(a.during) + asked.turn_around > asked.at
               ), false) AS is_held
        FROM public.inventory_allocation a
        WHERE a.node_id = n.id AND a.released_at IS NULL
    ) held
    WHERE n.site_id = wanted_site
      AND n.resource_class = wanted_class
      AND n.traits @> wanted_traits
      AND n.plans ? wanted_plan
      AND NOT n.is_cordoned
      AND NOT n.seen_maintenance
      AND CASE WHEN asked.is_now
          THEN n.status = 'available' AND n.seen_provision_state = 'available' AND n.seen_instance IS NULL
          ELSE n.status IN ('available', 'allocated', 'cleaning') END
      AND NOT held.is_held
$$;
REVOKE ALL ON FUNCTION public.inventory_free_nodes(uuid, text, jsonb, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_free_nodes(uuid, text, jsonb, text, timestamptz) TO neo_app;

-- When as many nodes as wanted are free for as long as wanted (null: without an end), as far as holds tell: now, at the known
-- end of a hold, or a turn-around after a node was given back. Null: not known.
CREATE OR REPLACE FUNCTION public.inventory_free_from(
    wanted_site uuid, wanted_class text, wanted_traits jsonb, wanted_gpus integer,
    wanted_plan text, wanted_quantity integer, wanted_length interval
)
RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    WITH asked AS MATERIALIZED (
        SELECT public.neo_now() AS now, make_interval(mins => s.turn_around_minutes) AS turn_around
        FROM public.inventory_site s
        WHERE s.id = wanted_site AND s.status = 'active' AND s.cleans_automatically
    ), node AS MATERIALIZED (
        SELECT n.id, n.status FROM public.inventory_node n
        WHERE n.site_id = wanted_site AND n.resource_class = wanted_class AND n.traits @> wanted_traits
          AND n.gpu_count = wanted_gpus AND n.plans ? wanted_plan AND NOT n.is_cordoned AND NOT n.seen_maintenance
          AND n.status IN ('available', 'allocated', 'cleaning')
    ), instant AS (
        SELECT n.id, asked.now AS at FROM node n, asked WHERE n.status = 'available'
        UNION
        SELECT n.id, max(a.released_at) + asked.turn_around FROM node n, asked, public.inventory_allocation a
        WHERE n.status = 'cleaning' AND a.node_id = n.id AND a.released_at IS NOT NULL
        GROUP BY n.id, asked.turn_around
        UNION
        SELECT n.id, upper(a.during) + CASE WHEN a.reservation IS NULL THEN interval '0' ELSE asked.turn_around END
        FROM node n, asked, public.inventory_allocation a
        WHERE a.node_id = n.id AND a.released_at IS NULL AND NOT upper_inf(a.during)
    ), first AS (
        SELECT i.id, min(i.at) AS at
        FROM instant i, asked
        WHERE i.at >= asked.now
          AND NOT EXISTS (
              SELECT FROM public.inventory_allocation a
              WHERE a.node_id = i.id AND a.released_at IS NULL
                AND a.during && tstzrange(i.at, i.at + (wanted_length + asked.turn_around))
          )
        GROUP BY i.id
    )
    SELECT at FROM first ORDER BY at OFFSET greatest(wanted_quantity, 1) - 1 LIMIT 1
$$;
REVOKE ALL ON FUNCTION public.inventory_free_from(uuid, text, jsonb, integer, text, integer, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_free_from(uuid, text, jsonb, integer, text, integer, interval) TO neo_app;

-- Of each offering on sale at each fitting site, for a plan and until an instant (null: without an end): nodes that can be
-- taken now, nodes that can be borrowed now until somebody's reservation, all nodes, and when the next one is free.
CREATE OR REPLACE FUNCTION public.inventory_availability(
    wanted_plan text DEFAULT 'on_demand', wanted_until timestamptz DEFAULT NULL
)
RETURNS TABLE (site uuid, offering uuid, free bigint, total bigint, borrowable bigint, free_from timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    SELECT fitting.site_id, o.id, counted.free, fitting.total, counted.borrowable,
           CASE WHEN counted.free = 0 THEN public.inventory_free_from(
               fitting.site_id, o.resource_class, o.traits, o.gpus, wanted_plan, 1, wanted_until - public.neo_now()
           ) END
    FROM public.catalog_offering o
    CROSS JOIN LATERAL (
        SELECT n.site_id, make_interval(mins => s.turn_around_minutes) AS turn_around, count(*) AS total
        FROM public.inventory_node n JOIN public.inventory_site s ON s.id = n.site_id
        WHERE n.resource_class = o.resource_class AND n.traits @> o.traits AND n.gpu_count = o.gpus
          AND n.status <> 'retired'
        GROUP BY n.site_id, s.turn_around_minutes
    ) fitting
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE reach.is_long) AS free,
               count(*) FILTER (
                   WHERE NOT reach.is_long
                     AND f.free_until >= public.neo_now() + fitting.turn_around + interval '1 hour'
               ) AS borrowable
        FROM public.inventory_free_nodes(fitting.site_id, o.resource_class, o.traits, wanted_plan) f
        CROSS JOIN LATERAL (
            SELECT coalesce(f.free_until, 'infinity') >= coalesce(wanted_until + fitting.turn_around, 'infinity')
                AS is_long
        ) reach
        WHERE f.gpus = o.gpus
    ) counted
    WHERE o.retired_at IS NULL
$$;
REVOKE ALL ON FUNCTION public.inventory_availability(text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_availability(text, timestamptz) TO neo_app;

-- How many nodes could be reserved for a term.
CREATE OR REPLACE FUNCTION public.inventory_free_for_term(
    wanted_site uuid, wanted_class text, wanted_traits jsonb, wanted_gpus integer,
    wanted_plan text, starts_at timestamptz, ends_at timestamptz
)
RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    SELECT count(*)
    FROM public.inventory_free_nodes(wanted_site, wanted_class, wanted_traits, wanted_plan, starts_at) f
    JOIN public.inventory_site s ON s.id = wanted_site
    WHERE f.gpus = wanted_gpus
      AND coalesce(f.free_until, 'infinity') >= ends_at + make_interval(mins => s.turn_around_minutes)
$$;
REVOKE ALL ON FUNCTION public.inventory_free_for_term(uuid, text, jsonb, integer, text, timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_free_for_term(uuid, text, jsonb, integer, text, timestamptz, timestamptz) TO neo_app;

-- When somebody else's next hold of a node begins, after an instant; null: never.
CREATE OR REPLACE FUNCTION public.inventory_next_hold(wanted_node uuid, after timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    SELECT min(lower(a.during)) FROM public.inventory_allocation a
    WHERE a.node_id = wanted_node AND a.released_at IS NULL AND lower(a.during) > after
$$;
REVOKE ALL ON FUNCTION public.inventory_next_hold(uuid, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_next_hold(uuid, timestamptz) TO neo_app;

-- Whether a service lives on a node, and when the last one left. A reservation that nobody uses leaves nothing to clean.
CREATE OR REPLACE FUNCTION public.inventory_last_lease(wanted_node uuid)
RETURNS TABLE (is_held boolean, ended_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    SELECT coalesce(bool_or(a.released_at IS NULL), false), max(a.released_at)
    FROM public.inventory_allocation a
    WHERE a.node_id = wanted_node AND a.service IS NOT NULL
$$;
REVOKE ALL ON FUNCTION public.inventory_last_lease(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_last_lease(uuid) TO neo_app;

-- The lowest free address of a pool, and the tenant's VLAN there or the lowest one nobody has. No row: exhausted.
CREATE OR REPLACE FUNCTION public.inventory_next_address(wanted_pool uuid, for_tenant uuid)
RETURNS TABLE (address inet, vlan integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    WITH pool AS (
        SELECT * FROM public.inventory_addresspool p WHERE p.id = wanted_pool
    ), taken AS (
        SELECT l.address, l.vlan, l.tenant
        FROM public.inventory_addresslease l
        WHERE l.pool_id = wanted_pool AND l.released_at IS NULL
    ), occupied AS (
        SELECT t.address FROM taken t UNION SELECT p.gateway FROM pool p
    ), candidates AS (  -- the lowest free address is the first one, or follows one that is occupied
        SELECT p.first_address AS address FROM pool p
        UNION SELECT o.address + 1 FROM occupied o
    ), vlans AS (
        SELECT p.vlan_first AS vlan FROM pool p UNION SELECT t.vlan + 1 FROM taken t
    )
    SELECT c.address, v.vlan
    FROM pool p
    CROSS JOIN LATERAL (
        SELECT min(c.address) AS address FROM candidates c
        WHERE c.address BETWEEN p.first_address AND p.last_address
          AND c.address NOT IN (SELECT o.address FROM occupied o)
    ) c
    CROSS JOIN LATERAL (
        SELECT coalesce(
            (SELECT min(t.vlan) FROM taken t WHERE t.tenant = for_tenant),
            (SELECT min(v.vlan) FROM vlans v
             WHERE v.vlan BETWEEN p.vlan_first AND p.vlan_last
               AND v.vlan NOT IN (SELECT t.vlan FROM taken t WHERE t.vlan IS NOT NULL))
        ) AS vlan
    ) v
    WHERE c.address IS NOT NULL AND v.vlan IS NOT NULL
$$;
REVOKE ALL ON FUNCTION public.inventory_next_address(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_next_address(uuid, uuid) TO neo_app;
