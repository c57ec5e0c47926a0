-- Intervals of services, derived from facts as they were known at an instant. Common table expressions, to be
-- followed by more of them or by a SELECT; rating, usage and explanations all begin with this text.
--
-- spans    every known fact with the end it follows from the others, not cut
-- pieces   the charged part of each span inside [since, until), every second of (service, version) once:
--          a second that several facts cover belongs to the first of them
-- sizes    SKU and GPUs of each service, or of each of its versions when it was resized
--
-- Nearly all services have live facts only, each lasting until the next one: their intervals need the facts of the
-- time asked for and the last one before it. Services with imported, late or corrected facts ("mixed") are read whole.
WITH RECURSIVE mixed AS MATERIALIZED (
    SELECT DISTINCT service_id FROM orders_fact
    WHERE (end_at IS NOT NULL OR supersedes_id IS NOT NULL)
      AND (%(services)s::uuid[] IS NULL OR service_id = ANY (%(services)s::uuid[]))
),
live AS (
    SELECT f.id AS fact_id, f.service_id, f.version, f.state, f.node_id, f.start_at, f.recorded_at
    FROM orders_fact f
    WHERE f.start_at >= %(since)s AND f.start_at < %(until)s AND f.recorded_at <= %(as_of)s
      AND (%(services)s::uuid[] IS NULL OR f.service_id = ANY (%(services)s::uuid[]))
      AND NOT EXISTS (SELECT FROM mixed m WHERE m.service_id = f.service_id)
    UNION ALL
    SELECT l.*
    FROM orders_service s
    CROSS JOIN LATERAL (
        SELECT f.id, f.service_id, f.version, f.state, f.node_id, f.start_at, f.recorded_at
        FROM orders_fact f
        WHERE f.service_id = s.id AND f.start_at < %(since)s AND f.recorded_at <= %(as_of)s
        ORDER BY f.start_at DESC, f.recorded_at DESC, f.id DESC
        LIMIT 1
    ) l
    WHERE (%(services)s::uuid[] IS NULL OR s.id = ANY (%(services)s::uuid[]))
      AND NOT EXISTS (SELECT FROM mixed m WHERE m.service_id = s.id)
),
live_spans AS (
    SELECT fact_id, service_id, version, state, node_id, start_at,
           lead(start_at) OVER (PARTITION BY service_id ORDER BY start_at, recorded_at, fact_id) AS end_at
    FROM live
),
corrections AS MATERIALIZED (
    SELECT c.id, c.supersedes_id, c.recorded_at
    FROM mixed m
    JOIN orders_fact c ON c.service_id = m.service_id AND c.supersedes_id IS NOT NULL
),
stand_ins (id, place_at, place_id) AS (
    -- Corrections of facts without an end: they keep the place of the fact they stand in for.
    SELECT c.id, f.recorded_at, f.id
    FROM corrections c
    JOIN orders_fact f ON f.id = c.supersedes_id
    WHERE f.supersedes_id IS NULL AND f.end_at IS NULL
    UNION ALL
    SELECT c.id, s.place_at, s.place_id
    FROM stand_ins s
    JOIN corrections c ON c.supersedes_id = s.id
),
known AS (
    SELECT f.id AS fact_id, f.service_id, f.version, f.state, f.start_at, f.end_at, f.node_id,
           f.end_at IS NULL OR s.id IS NOT NULL AS is_chained,
           coalesce(s.place_at, f.recorded_at) AS place_at,
           coalesce(s.place_id, f.id) AS place_id
    FROM mixed m
    JOIN orders_fact f ON f.service_id = m.service_id
    LEFT JOIN stand_ins s ON s.id = f.id
    WHERE f.recorded_at <= %(as_of)s
      AND f.start_at < %(until)s
      AND (f.end_at IS NULL OR f.end_at > %(since)s OR s.id IS NOT NULL)
      AND f.state <> ''
      AND NOT EXISTS (
          SELECT FROM corrections c WHERE c.supersedes_id = f.id AND c.recorded_at <= %(as_of)s
      )
),
mixed_spans AS (
    -- A fact without an end lasts until the next fact of its chain.
    SELECT fact_id, service_id, version, state, node_id, start_at,
           coalesce(end_at, lead(start_at) OVER (
               PARTITION BY service_id, is_chained ORDER BY start_at, place_at, place_id
           )) AS end_at
    FROM known
),
spans AS (
    SELECT * FROM live_spans
    UNION ALL
    SELECT * FROM mixed_spans
),
charges AS (
    SELECT s.id AS service_id, c.state
    FROM orders_service s
    JOIN orders_order o ON o.id = s.order_id
    JOIN unnest(%(bases)s::text[], %(charged)s::text[]) AS c (basis, state) ON c.basis = o.billing_basis
    WHERE %(currency)s::text IS NULL OR o.currency = %(currency)s::text
),
charged AS (
    SELECT a.fact_id, a.service_id, a.version, a.state, a.node_id,
           greatest(a.start_at, %(since)s) AS start_at, least(a.end_at, %(until)s) AS end_at
    FROM mixed_spans a
    JOIN charges c ON c.service_id = a.service_id AND c.state = a.state
    WHERE greatest(a.start_at, %(since)s) < least(a.end_at, %(until)s)
),
exclusive AS (
    SELECT fact_id, service_id, version, state, node_id, end_at,
           greatest(start_at, max(end_at) OVER (
               PARTITION BY service_id, version ORDER BY start_at, end_at, fact_id
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           )) AS start_at
    FROM charged
),
pieces AS (
    SELECT a.fact_id, a.service_id, a.version, a.state, a.node_id,
           greatest(a.start_at, %(since)s) AS start_at, least(a.end_at, %(until)s) AS end_at
    FROM live_spans a
    JOIN charges c ON c.service_id = a.service_id AND c.state = a.state
    WHERE greatest(a.start_at, %(since)s) < least(a.end_at, %(until)s)
    UNION ALL
    SELECT fact_id, service_id, version, state, node_id, start_at, end_at
    FROM exclusive
    WHERE start_at < end_at
)
