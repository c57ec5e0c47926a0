-- Questions that must see across tenants. They answer with nodes, counts and addresses, never with a tenant's data.

-- The nodes that can be taken now; the only definition of "free": availability counts what this returns.
CREATE OR REPLACE FUNCTION public.inventory_free_nodes(wanted_site uuid, wanted_class text, wanted_traits jsonb)
RETURNS TABLE (node uuid, gpus integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    SELECT n.id, n.gpu_count
    FROM public.inventory_node n
    JOIN public.inventory_site s ON s.id = n.site_id
    WHERE n.site_id = wanted_site
      AND n.resource_class = wanted_class
      AND n.traits @> wanted_traits
      AND s.status = 'active'
      AND s.cleans_automatically
      AND n.status = 'available'
      AND n.seen_provision_state = 'available'
      AND NOT n.seen_maintenance
      AND NOT n.is_cordoned
      AND n.seen_instance IS NULL
      AND NOT EXISTS (
          SELECT FROM public.inventory_allocation a
          WHERE a.node_id = n.id AND a.released_at IS NULL AND upper_inf(a.during)
      )
$$;
REVOKE ALL ON FUNCTION public.inventory_free_nodes(uuid, text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_free_nodes(uuid, text, jsonb) TO neo_app;

-- Free and total nodes of each site that fit each offering on sale.
CREATE OR REPLACE FUNCTION public.inventory_availability()
RETURNS TABLE (site uuid, offering uuid, free bigint, total bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    SELECT fitting.site_id, o.id,
           (SELECT count(*) FROM public.inventory_free_nodes(fitting.site_id, o.resource_class, o.traits) f
            WHERE f.gpus = o.gpus),
           fitting.total
    FROM public.catalog_offering o
    CROSS JOIN LATERAL (
        SELECT n.site_id, count(*) AS total
        FROM public.inventory_node n
        WHERE n.resource_class = o.resource_class AND n.traits @> o.traits AND n.gpu_count = o.gpus
          AND n.status <> 'retired'
        GROUP BY n.site_id
    ) fitting
    WHERE o.retired_at IS NULL
$$;
REVOKE ALL ON FUNCTION public.inventory_availability() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.inventory_availability() TO neo_app;

-- Whether anybody holds a node, and when its last lease ended.
CREATE OR REPLACE FUNCTION public.inventory_last_lease(wanted_node uuid)
RETURNS TABLE (is_held boolean, ended_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    SELECT coalesce(bool_or(a.released_at IS NULL), false), max(a.released_at)
    FROM public.inventory_allocation a
    WHERE a.node_id = wanted_node
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
