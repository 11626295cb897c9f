-- The rows of table $1.$2 by the last ANALYZE; -1 for none yet.
SELECT c.reltuples
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
