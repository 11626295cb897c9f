-- Moves the tasks $1 to history with the results $2 and the notes $3. The time
-- is checked once more: a handler may have given its own task a new one. The
-- rows are locked by this transaction since they were found to be due.
WITH verdict AS (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[]) AS v (id, result, note)
), gone AS (
    DELETE FROM {{.schema}}.delay_task d
     USING verdict v
     WHERE d.id = v.id AND d.status IN ('WAITING', 'SENT') AND d.run_at <= now()
    RETURNING d.*, v.result, v.note
)
INSERT INTO {{.schema}}.delay_task_history
       (id, biz_type, biz_id, fire_at, result, via, sends, attempts, reclaims, payload, last_error, created_at)
SELECT g.id, g.biz_type, g.biz_id, g.fire_at, g.result::{{.schema}}.task_result, $4::text::{{.schema}}.task_via,
       g.sends, g.attempts, g.reclaims, g.payload, coalesce(nullif(g.note, ''), g.last_error), g.created_at
  FROM gone g
