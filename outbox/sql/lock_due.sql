-- Locks what is overdue, for the types $1, at most $5. WAITING tasks count as
-- soon as they are due, for no message is on its way; SENT ones $4 later. $2
-- and $3 are the marks up to which nothing was found: without them the scan
-- walks over every entry that an old snapshot keeps from being vacuumed.
SELECT * FROM (
    SELECT d.id, d.biz_type, d.biz_id, d.fire_at, d.run_at, d.status::text, d.sends, d.attempts, d.reclaims, d.payload
      FROM {{.schema}}.delay_task d
     WHERE d.status = 'WAITING' AND d.run_at >= $2::timestamptz AND d.run_at <= now()
       AND d.biz_type = ANY ($1::text[])
       AND NOT EXISTS (SELECT FROM {{.schema}}.delay_task_request r WHERE r.task_id = d.id)
     ORDER BY d.run_at LIMIT $5 FOR UPDATE OF d SKIP LOCKED) AS waiting
UNION ALL
SELECT * FROM (
    SELECT d.id, d.biz_type, d.biz_id, d.fire_at, d.run_at, d.status::text, d.sends, d.attempts, d.reclaims, d.payload
      FROM {{.schema}}.delay_task d
     WHERE d.status = 'SENT' AND d.run_at >= $3::timestamptz AND d.run_at <= now() - $4::interval
       AND d.biz_type = ANY ($1::text[])
       AND NOT EXISTS (SELECT FROM {{.schema}}.delay_task_request r WHERE r.task_id = d.id)
     ORDER BY d.run_at LIMIT $5 FOR UPDATE OF d SKIP LOCKED) AS sent
