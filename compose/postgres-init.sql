-- Run once, by the image, as the superuser of a new server: the role that the programs use, which is not one.
-- It owns the database, so it may create the extension pg_trgm.
\set password `cat "${SECRETS:-/run/secrets}/database_password"`
CREATE ROLE chart_index LOGIN PASSWORD :'password';
CREATE DATABASE chart_index OWNER chart_index;
REVOKE ALL ON DATABASE chart_index FROM PUBLIC;
