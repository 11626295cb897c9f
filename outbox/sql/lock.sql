-- Locks the due ones among the named tasks and never waits. A task with a
-- pending request is left to whoever honours it.
SELECT d.id, d.biz_type, d.biz_id, d.fire_at, d.run_at, d.status::text, d.sends, d.attempts, d.reclaims, d.payload
  FROM {{.schema}}.delay_task d
 WHERE d.id = ANY ($1::bigint[])
   AND d.status IN ('WAITING', 'SENT') AND d.run_at <= now()
   AND NOT EXISTS (SELECT FROM {{.schema}}.delay_task_request r WHERE r.task_id = d.id)
   FOR UPDATE OF d SKIP LOCKED
