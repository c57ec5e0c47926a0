-- Making and dropping a tenant's schema: the app role may ask for it by name and for nothing else.
CREATE OR REPLACE FUNCTION public.create_tenant_schema(name text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
DECLARE
    script record;
BEGIN
    IF current_setting('neo.tenant', true) IS DISTINCT FROM 'platform' THEN
        RAISE EXCEPTION 'only the platform makes tenants' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF name !~ '^t_[a-z][a-z0-9_]{1,40}$' THEN
        RAISE EXCEPTION 'not a tenant schema name: %', name USING ERRCODE = 'invalid_schema_name';
    END IF;
    SELECT s.version, s.body INTO STRICT script FROM public.tenancy_script s;
    EXECUTE replace(script.body, 'tenant_template', name);
    RETURN script.version;
END $$;
REVOKE ALL ON FUNCTION public.create_tenant_schema(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.create_tenant_schema(text) TO neo_app;

CREATE OR REPLACE FUNCTION public.drop_tenant_schema(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF current_setting('neo.tenant', true) IS DISTINCT FROM 'platform' THEN
        RAISE EXCEPTION 'only the platform drops tenants' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF name !~ '^t_[a-z][a-z0-9_]{1,40}$' THEN
        RAISE EXCEPTION 'not a tenant schema name: %', name USING ERRCODE = 'invalid_schema_name';
    END IF;
    IF EXISTS (SELECT FROM public.tenancy_tenant t WHERE t.schema_name = drop_tenant_schema.name AND t.status IN ('active', 'suspended')) THEN
        RAISE EXCEPTION 'tenant schema % is in use', name USING ERRCODE = 'object_in_use';
    END IF;
    EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', name);
END $$;
REVOKE ALL ON FUNCTION public.drop_tenant_schema(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.drop_tenant_schema(text) TO neo_app;
