-- What reservations leave to be charged of `pieces`. At each second a reservation covers up to its GPUs of charged
-- time of its SKU, the allocation (service, version) that was charged first before the others, then by id.
--
-- open_pieces   time with the GPUs that nothing covers; `gpus` null: all of them
, reserved AS MATERIALIZED (
    SELECT r.sku, r.quantity * r.gpus_each AS gpus, greatest(r.starts_at, %(since)s) AS start_at,
           least(r.ended_at, r.ends_at, %(until)s) AS end_at
    FROM orders_reservation r
    WHERE (r.status = ANY (%(reserved)s::text[]) OR (r.status = 'expired' AND r.begun_at IS NOT NULL))
      AND (%(currency)s::text IS NULL OR r.currency = %(currency)s::text)
      AND r.created_at <= %(as_of)s
      AND greatest(r.starts_at, %(since)s) < least(r.ended_at, r.ends_at, %(until)s)
),
sized AS MATERIALIZED (
    SELECT p.*, z.sku, z.gpus
    FROM pieces p
    JOIN sizes z ON z.service_id = p.service_id AND (z.version IS NULL OR z.version = p.version)
    WHERE z.sku IN (SELECT sku FROM reserved)
),
ranked AS MATERIALIZED (
    SELECT a.service_id, a.version,
           row_number() OVER (ORDER BY l.first_at, a.service_id, a.version) AS place
    FROM (SELECT DISTINCT service_id, version FROM sized) a
    CROSS JOIN LATERAL (
        SELECT min(f.start_at) AS first_at
        FROM orders_fact f
        JOIN charges c ON c.service_id = f.service_id AND c.state = f.state
        WHERE f.service_id = a.service_id AND f.version = a.version AND f.recorded_at <= %(as_of)s
          AND NOT EXISTS (
              SELECT FROM orders_fact n WHERE n.supersedes_id = f.id AND n.recorded_at <= %(as_of)s
          )
    ) l
),
edges AS MATERIALIZED (
    SELECT sku, at, row_number() OVER (PARTITION BY sku ORDER BY at) AS n
    FROM (
        SELECT sku, start_at AS at FROM sized
        UNION SELECT sku, end_at FROM sized
        UNION SELECT sku, start_at FROM reserved
        UNION SELECT sku, end_at FROM reserved
    ) e
),
slices AS MATERIALIZED (
    -- Between two neighbouring edges nothing begins or ends.
    SELECT a.sku, a.n, a.at AS start_at, b.at AS end_at,
           coalesce((
               SELECT sum(r.gpus) FROM reserved r
               WHERE r.sku = a.sku AND r.start_at <= a.at AND r.end_at >= b.at
           ), 0) AS gpus
    FROM edges a
    JOIN edges b ON b.sku = a.sku AND b.n = a.n + 1
),
sliced AS (
    SELECT z.fact_id, z.service_id, z.version, z.state, z.node_id, z.sku, z.gpus,
           generate_series(a.n, b.n - 1) AS n
    FROM sized z
    JOIN edges a ON a.sku = z.sku AND a.at = z.start_at
    JOIN edges b ON b.sku = z.sku AND b.at = z.end_at
),
shares AS (
    SELECT z.fact_id, z.service_id, z.version, z.state, z.node_id, s.start_at, s.end_at,
           z.gpus - least(z.gpus, greatest(0, s.gpus + z.gpus - sum(z.gpus) OVER (
               PARTITION BY z.sku, z.n ORDER BY r.place
           ))) AS gpus
    FROM sliced z
    JOIN slices s ON s.sku = z.sku AND s.n = z.n
    JOIN ranked r ON r.service_id = z.service_id AND r.version = z.version
),
runs AS (
    SELECT *, sum(begins) OVER (PARTITION BY fact_id ORDER BY start_at) AS run
    FROM (
        SELECT *, CASE WHEN start_at = lag(end_at) OVER w AND gpus = lag(gpus) OVER w
                       THEN 0 ELSE 1 END AS begins
        FROM shares WHERE gpus > 0
        WINDOW w AS (PARTITION BY fact_id ORDER BY start_at)
    ) s
),
open_pieces AS (
    SELECT p.fact_id, p.service_id, p.version, p.state, p.node_id, p.start_at, p.end_at,
           NULL::bigint AS gpus
    FROM pieces p
    JOIN sizes z ON z.service_id = p.service_id AND (z.version IS NULL OR z.version = p.version)
    WHERE z.sku NOT IN (SELECT sku FROM reserved)
      AND (%(only)s::uuid[] IS NULL OR p.service_id = ANY (%(only)s::uuid[]))
    UNION ALL
    SELECT fact_id, service_id, version, state, node_id, min(start_at), max(end_at), gpus::bigint
    FROM runs
    WHERE %(only)s::uuid[] IS NULL OR service_id = ANY (%(only)s::uuid[])
    GROUP BY fact_id, service_id, version, state, node_id, run, gpus
)
