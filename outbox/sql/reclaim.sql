-- Records that task $1 is about to be tried alone under suspicion, and takes
-- it out of the journals that cast it. The $2th time it ends FAILED instead. A
-- trial that ended without a word is not repeated before $3 has passed: a
-- network that loses every session for a while would convict the innocent.
WITH held AS (
    SELECT d.id FROM {{.schema}}.delay_task d
     WHERE d.id = $1 AND d.status IN ('WAITING', 'SENT') AND d.run_at <= now()
       AND (d.reclaims = 0 OR d.updated_at <= now() - $3::interval)
       FOR UPDATE SKIP LOCKED
), cleared AS (
    UPDATE {{.schema}}.sweep_batch b SET ids = array_remove(b.ids, $1::bigint)
     WHERE b.ids @> ARRAY[$1::bigint] AND EXISTS (SELECT FROM held)
)
UPDATE {{.schema}}.delay_task d
   SET reclaims = d.reclaims + 1, updated_at = now(),
       status = CASE WHEN d.reclaims + 1 >= $2 THEN 'FAILED'::{{.schema}}.task_state ELSE d.status END,
       last_error = CASE WHEN d.reclaims + 1 >= $2
                         THEN format('execution ended without a word %s times: the worker or its database session died', d.reclaims + 1)
                         ELSE d.last_error END
  FROM held
 WHERE d.id = held.id
RETURNING d.id, d.biz_type, d.biz_id, d.status::text, d.attempts, coalesce(d.last_error, '')
