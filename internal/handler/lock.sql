-- Takes the rows that the ids in $1 name, without ever waiting, and answers for
-- each id in its order: the key as the row spells it, and whether every row
-- under that key is ours.
--   key, true    the row is ours
--   null, true   there is no such row
--   any, false   a row exists and someone else holds it
-- The counts are for keys that are not unique. A row that someone changes
-- between snapshot and lock counts as held, unless its new version still
-- matches, so a doubt becomes another attempt and never a lost task.
WITH wanted AS (
    SELECT w.id, w.n FROM unnest($1) WITH ORDINALITY AS w (id, n)
), locked AS (
    SELECT t.{key} AS key FROM {table} AS t
    WHERE t.{key} = ANY ($1)
    FOR NO KEY UPDATE OF t SKIP LOCKED
), ours AS (
    SELECT l.key, count(*) AS rows FROM locked AS l GROUP BY l.key
), there AS (
    SELECT t.{key} AS key, count(*) AS rows FROM {table} AS t
    WHERE t.{key} = ANY ($1)
    GROUP BY t.{key}
)
SELECT ours.key, coalesce(ours.rows, 0) >= coalesce(there.rows, 0)
FROM wanted
LEFT JOIN ours ON ours.key = wanted.id
LEFT JOIN there ON there.key = wanted.id
ORDER BY wanted.n
