-- Extensions and the public schema, made once by a superuser inside the product's database.
-- Extensions live apart from the tables so that no search_path of a tenant can shadow an operator.
\set ON_ERROR_STOP on
CREATE SCHEMA IF NOT EXISTS extensions;
CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA extensions;
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA extensions;
GRANT USAGE ON SCHEMA extensions TO neo_owner, neo_app;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
ALTER SCHEMA public OWNER TO neo_owner;
GRANT USAGE ON SCHEMA public TO neo_app;
