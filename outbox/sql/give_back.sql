-- SENT tasks whose message has been spent: WAITING again. The time must be the
-- message's, to the microsecond; otherwise the task was rescheduled and
-- another message speaks for it.
WITH held AS (
    SELECT d.id
      FROM {{.schema}}.delay_task d
      JOIN unnest($1::bigint[], $2::timestamptz[]) AS m (id, run_at) ON m.id = d.id AND m.run_at = d.run_at
     WHERE d.status = 'SENT'
       FOR UPDATE OF d SKIP LOCKED
)
UPDATE {{.schema}}.delay_task d
   SET status = 'WAITING', updated_at = now()
  FROM held
 WHERE d.id = held.id
