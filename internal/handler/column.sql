-- What the catalog knows of column $3 of table $1.$2. No row: no such table;
-- nulls: no such column. A domain is seen through, as it is in the description
-- of a result, so that an id which its CHECK forbids is merely absent.
SELECT c.relkind::text, base.oid, base.typarray,
    pg_catalog.format_type(base.oid, NULL),
    pg_catalog.format_type(base.typarray, NULL),
    EXISTS (
        SELECT FROM pg_catalog.pg_index AS i
        WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid
            AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
    )
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute AS a
    ON a.attrelid = c.oid AND a.attname = $3 AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN LATERAL (
    WITH RECURSIVE layer AS (
        SELECT t.oid, t.typarray, t.typtype, t.typbasetype
        FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid
        UNION ALL
        SELECT t.oid, t.typarray, t.typtype, t.typbasetype
        FROM layer JOIN pg_catalog.pg_type AS t ON t.oid = layer.typbasetype
        WHERE layer.typtype = 'd'
    )
    SELECT layer.oid, layer.typarray FROM layer WHERE layer.typtype <> 'd'
) AS base ON true
WHERE n.nspname = $1 AND c.relname = $2
