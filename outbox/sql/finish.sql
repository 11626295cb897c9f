-- Moves the tasks $1 to history with the results $3 and the notes $4. $2 are
-- the times they were due when this transaction locked them: a handler that has
-- scheduled its own key again, be it for a time that has passed, has asked for
-- another execution.
WITH verdict AS (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[]) AS v (id, run_at, result, note)
), gone AS (
    DELETE FROM {{.schema}}.delay_task d
     USING verdict v
     WHERE d.id = v.id AND d.run_at = v.run_at AND d.run_at <= now() AND d.status IN ('WAITING', 'SENT')
    RETURNING d.*, v.result, v.note
)
INSERT INTO {{.schema}}.delay_task_history
       (id, biz_type, biz_id, fire_at, result, via, sends, attempts, reclaims, payload, last_error, created_at)
SELECT g.id, g.biz_type, g.biz_id, g.fire_at, g.result::{{.schema}}.task_result, $5::text::{{.schema}}.task_via,
       g.sends, g.attempts, g.reclaims, g.payload, coalesce(nullif(g.note, ''), g.last_error), g.created_at
  FROM gone g
