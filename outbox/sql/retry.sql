-- Executions that failed: try again after $4 doubled with each attempt, at
-- most $5, give or take a quarter so that a crowd does not come back as one;
-- FAILED after $3 attempts. An execution that ended with an error did not kill
-- its worker, so reclaims starts over.
WITH held AS (
    SELECT d.id, v.error
      FROM {{.schema}}.delay_task d
      JOIN unnest($1::bigint[], $2::text[]) AS v (id, error) ON v.id = d.id
     WHERE d.status IN ('WAITING', 'SENT') AND d.run_at <= now()
       FOR UPDATE OF d SKIP LOCKED
)
UPDATE {{.schema}}.delay_task d
   SET attempts = d.attempts + 1, reclaims = 0, last_error = held.error, updated_at = now(),
       status = CASE WHEN d.attempts + 1 >= $3 THEN 'FAILED' ELSE 'WAITING' END::{{.schema}}.task_state,
       retry_at = now() + least($4::interval * power(2, least(d.attempts, 20)), $5::interval) * (0.75 + random() / 2)
  FROM held
 WHERE d.id = held.id
RETURNING d.id, d.biz_type, d.biz_id, d.status::text, d.attempts, d.last_error
