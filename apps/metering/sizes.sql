, sizes AS MATERIALIZED (
    -- `version` null: the service was never resized, and this is its size in any version.
    SELECT s.id AS service_id, v.version, coalesce(v.sku, s.sku) AS sku, coalesce(v.gpus, s.gpus) AS gpus
    FROM orders_service s
    LEFT JOIN orders_serviceversion v ON v.service_id = s.id
)
