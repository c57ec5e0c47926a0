-- A tenant's work may tell the operators, whose notices it cannot see: it may add one and nothing else.
CREATE OR REPLACE FUNCTION public.notices_tell_operators(
    id uuid, language text, kind text, subject text, body text, link text, dedup_key text
) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, extensions, pg_temp AS $$
    INSERT INTO notices_notice (id, tenant, recipient, email, language, kind, subject, body, link,
                                dedup_key, mail_attempts, mail_error)
    VALUES ($1, NULL, NULL, '', $2, $3, $4, $5, $6, $7, 0, '')
    ON CONFLICT (dedup_key) DO NOTHING
$$;
REVOKE ALL ON FUNCTION public.notices_tell_operators(uuid, text, text, text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.notices_tell_operators(uuid, text, text, text, text, text, text) TO neo_app;
