-- What charged pieces of time cost. Follows the relations `open_pieces` (service_id, version, node_id, fact_id,
-- start_at, end_at, gpus) and `sizes`; rating, cost so far and explanations all read this text.
--
-- priced   each piece cut where its price changes; without a price its unit_price is null
-- rated    one row for each (service, version, price code, price): the amounts of lines
, prices AS MATERIALIZED (
    SELECT p.id, coalesce(nullif(p.code, ''), p.id::text) AS code, b.kind, p.sku, p.amount,
           tstzrange(greatest(date_trunc('second', p.effective_from), %(since)s),
                     least(date_trunc('second', p.effective_to), %(until)s)) AS during
    FROM public.catalog_price p
    JOIN public.catalog_pricebook b ON b.id = p.book_id
    WHERE p.unit = 'gpu_hour'
      AND b.currency = %(currency)s
      AND (b.kind = 'list' OR b.tenant = %(tenant)s)
      AND p.effective_from < %(until)s
      AND (p.effective_to IS NULL OR p.effective_to > %(since)s)
),
contracted AS (
    SELECT sku, range_agg(during) AS during FROM prices WHERE kind = 'contract' GROUP BY sku
),
covered AS (
    SELECT sku, range_agg(during) AS during FROM prices GROUP BY sku
),
tariff AS (
    -- A contract price beats a list price; time without either is a row without a price.
    SELECT id, code, kind, sku, amount, during FROM prices WHERE kind = 'contract'
    UNION ALL
    SELECT p.id, p.code, p.kind, p.sku, p.amount, r.during
    FROM prices p
    LEFT JOIN contracted c ON c.sku = p.sku
    CROSS JOIN unnest(multirange(p.during) - coalesce(c.during, '{}'::tstzmultirange)) AS r (during)
    WHERE p.kind = 'list'
    UNION ALL
    SELECT NULL, '', '', s.sku, NULL, r.during
    FROM (SELECT DISTINCT sku FROM sizes) s
    LEFT JOIN covered c ON c.sku = s.sku
    CROSS JOIN unnest(
        multirange(tstzrange(%(since)s, %(until)s)) - coalesce(c.during, '{}'::tstzmultirange)
    ) AS r (during)
),
keyed AS MATERIALIZED (
    SELECT id, code, kind, sku, amount, lower(during) AS start_at, upper(during) AS end_at,
           dense_rank() OVER (ORDER BY sku, code, amount) AS key
    FROM tariff
),
named AS MATERIALIZED (
    -- What a line prints of its price: of two validities with one code and amount the first.
    SELECT DISTINCT ON (key) key, id, code, kind, amount FROM keyed ORDER BY key, start_at
),
fixed AS MATERIALIZED (
    -- A price agreed to the end of the order's term; after that the price in force.
    SELECT s.id AS service_id, o.price_id, o.unit_price,
           coalesce(nullif(p.code, ''), o.price_id::text) AS code,
           coalesce(o.ends_at, 'infinity') AS end_at
    FROM orders_service s
    JOIN orders_order o ON o.id = s.order_id
    LEFT JOIN public.catalog_price p ON p.id = o.price_id
    WHERE o.price_rule = 'fixed'
),
floating AS MATERIALIZED (
    SELECT z.service_id, z.version, z.sku, coalesce(f.end_at, '-infinity') AS start_at
    FROM sizes z
    LEFT JOIN fixed f ON f.service_id = z.service_id
    WHERE f.end_at IS DISTINCT FROM 'infinity'
),
priced AS (
    SELECT p.service_id, p.version, p.node_id, p.fact_id, k.key,
           greatest(p.start_at, k.start_at, f.start_at) AS start_at, least(p.end_at, k.end_at) AS end_at, p.gpus
    FROM open_pieces p
    JOIN floating f ON f.service_id = p.service_id AND (f.version IS NULL OR f.version = p.version)
    JOIN keyed k ON k.sku = f.sku AND k.start_at < p.end_at AND k.end_at > p.start_at
    WHERE f.start_at < least(p.end_at, k.end_at)
    UNION ALL
    SELECT p.service_id, p.version, p.node_id, p.fact_id, NULL, p.start_at, least(p.end_at, f.end_at), p.gpus
    FROM open_pieces p
    JOIN fixed f ON f.service_id = p.service_id AND f.end_at > p.start_at
),
subtotals AS (
    SELECT service_id, version, key, node_id, min(start_at) AS first_at, max(end_at) AS last_at,
           sum(date_part('epoch', end_at - start_at)::bigint)::bigint AS seconds,
           sum(date_part('epoch', end_at - start_at)::bigint * gpus)::bigint AS gpu_seconds
    FROM priced
    GROUP BY service_id, version, key, node_id
),
gathered AS (
    SELECT service_id, version, key, min(first_at) AS first_at, max(last_at) AS last_at,
           sum(seconds)::bigint AS seconds, sum(gpu_seconds)::bigint AS gpu_seconds,
           array_agg(node_id) FILTER (WHERE node_id IS NOT NULL) AS nodes
    FROM subtotals
    GROUP BY service_id, version, key
),
costed AS (
    SELECT g.service_id, g.version, g.first_at, g.last_at, g.nodes, s.name AS service_name, z.sku, z.gpus,
           s.order_id, s.ordinal, s.node_name, coalesce(g.gpu_seconds, g.seconds * z.gpus) AS gpu_seconds,
           CASE WHEN g.key IS NULL THEN f.price_id ELSE n.id END AS price_id,
           CASE WHEN g.key IS NULL THEN f.code ELSE n.code END AS price_code,
           CASE WHEN g.key IS NULL THEN 'fixed' ELSE n.kind END AS price_kind,
           CASE WHEN g.key IS NULL THEN f.unit_price ELSE n.amount END AS unit_price
    FROM gathered g
    JOIN orders_service s ON s.id = g.service_id
    JOIN sizes z ON z.service_id = g.service_id AND (z.version IS NULL OR z.version = g.version)
    LEFT JOIN named n ON n.key = g.key
    LEFT JOIN fixed f ON f.service_id = g.service_id AND g.key IS NULL
),
rated AS (
    -- Half-up in whole numbers: div() is exact, while a quotient would itself be rounded first.
    SELECT row_number() OVER (ORDER BY o.serial, c.ordinal, c.version, c.first_at, c.price_code) AS position,
           c.service_id, c.service_name, c.version, c.order_id,
           'ORD-' || lpad(o.serial::text, greatest(6, length(o.serial::text)), '0') AS order_number,
           o.project_id, j.name AS project_name, o.contract_id,
           coalesce(
               (SELECT jsonb_agg(d.name ORDER BY d.name)
                FROM public.inventory_node d WHERE d.id = ANY (c.nodes)),
               CASE WHEN c.node_name = '' THEN '[]' ELSE jsonb_build_array(c.node_name) END
           ) AS node_names,
           c.sku, c.gpus AS quantity, c.first_at, c.last_at, c.gpu_seconds,
           (div(2 * c.gpu_seconds::numeric * 1000000 + 3600, 7200) * 0.000001)::numeric(20, 6) AS gpu_hours,
           c.price_id, c.price_code, c.price_kind, c.unit_price,
           (div(2 * c.gpu_seconds::numeric * c.unit_price * %(scale)s + 3600, 7200) * %(minor_unit)s
           )::numeric(20, 4) AS amount
    FROM costed c
    JOIN orders_order o ON o.id = c.order_id
    JOIN accounts_project j ON j.id = o.project_id
)
