-- How long making such a server took lately, over all tenants: durations only, of nobody in particular.
CREATE OR REPLACE FUNCTION public.provisioning_times(wanted_sku text, wanted_site uuid, makers text[], most integer)
RETURNS TABLE (took interval)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT r.ended_at - r.created_at FROM provisioning_run r
    WHERE r.sku = wanted_sku AND r.site_id = wanted_site AND r.status = 'succeeded'
        AND r.blueprint = ANY (makers) AND r.ended_at IS NOT NULL
    ORDER BY r.created_at DESC LIMIT most
$$;
REVOKE ALL ON FUNCTION public.provisioning_times(text, uuid, text[], integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.provisioning_times(text, uuid, text[], integer) TO neo_app;
