-- Roles and the database, made once by a superuser:
--   psql -v owner_password=… -v app_password=… -v database=neocloud -f roles.sql
-- neo_owner runs migrations and owns every object; neo_app is what web and workers use and owns nothing.
-- A superuser, a BYPASSRLS role or an owner would see every tenant's rows, so the product refuses to start as one.
\set ON_ERROR_STOP on
SELECT format('CREATE ROLE neo_owner LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB PASSWORD %L', :'owner_password')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'neo_owner') \gexec
SELECT format('CREATE ROLE neo_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB PASSWORD %L', :'app_password')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'neo_app') \gexec
SELECT format('CREATE DATABASE %I OWNER neo_owner', :'database')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', :'database') \gexec
SELECT format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO neo_owner, neo_app', :'database') \gexec
