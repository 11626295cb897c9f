-- Journals an execution of the tasks $1, which the caller has locked, leaving
-- out those that stand in another journal row: they are free to be locked, so
-- the execution that wrote that row is dead.
WITH suspect AS (
    SELECT DISTINCT s.id
      FROM {{.schema}}.sweep_batch b, unnest(b.ids) AS s (id)
     WHERE b.ids && $1::bigint[] AND s.id = ANY ($1::bigint[])
), mine AS (
    INSERT INTO {{.schema}}.sweep_batch (ids)
    SELECT array_agg(i.id) FROM unnest($1::bigint[]) AS i (id)
     WHERE i.id NOT IN (SELECT id FROM suspect)
    HAVING count(*) > 0
    RETURNING id
)
SELECT coalesce((SELECT id FROM mine), 0), coalesce((SELECT array_agg(id) FROM suspect), '{}')
