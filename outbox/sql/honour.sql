-- Cancels and reschedules that met an execution which has ended without
-- finishing the task. The last request of a task counts; requests whose task
-- is gone came too late. Never waits.
WITH last AS (
    SELECT DISTINCT ON (r.task_id) r.task_id, r.fire_at, r.via
      FROM {{.schema}}.delay_task_request r
     ORDER BY r.task_id, r.id DESC
), held AS (
    SELECT d.id, last.fire_at, last.via
      FROM {{.schema}}.delay_task d JOIN last ON last.task_id = d.id
     WHERE d.status <> 'RUNNING'
       FOR UPDATE OF d SKIP LOCKED
), cancelled AS (
    DELETE FROM {{.schema}}.delay_task d USING held
     WHERE d.id = held.id AND held.fire_at IS NULL
    RETURNING d.*, held.via
), moved AS (
    UPDATE {{.schema}}.delay_task d
       SET fire_at = held.fire_at, retry_at = NULL, status = 'WAITING', sends = 0,
           attempts = 0, reclaims = 0, last_error = NULL, updated_at = now()
      FROM held
     WHERE d.id = held.id AND held.fire_at IS NOT NULL
), recorded AS (
    INSERT INTO {{.schema}}.delay_task_history
           (id, biz_type, biz_id, fire_at, result, via, sends, attempts, reclaims, payload, last_error, created_at)
    SELECT c.id, c.biz_type, c.biz_id, c.fire_at, 'CANCELLED', c.via,
           c.sends, c.attempts, c.reclaims, c.payload, c.last_error, c.created_at
      FROM cancelled c
)
DELETE FROM {{.schema}}.delay_task_request r
 WHERE r.task_id IN (SELECT id FROM held)
    OR NOT EXISTS (SELECT FROM {{.schema}}.delay_task d WHERE d.id = r.task_id)
