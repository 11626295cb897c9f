-- A type's name, its array type (0 for none), and whether it holds strings.
SELECT pg_catalog.format_type(oid, NULL), typarray, typcategory = 'S'
FROM pg_catalog.pg_type WHERE oid = $1
