-- FAILED tasks start over; $1 id or 0, $2 biz_type or '', $3 biz_id or ''.
WITH held AS (
    SELECT d.id FROM {{.schema}}.delay_task d
     WHERE d.status = 'FAILED'
       AND ($1::bigint = 0 OR d.id = $1) AND ($2::text = '' OR d.biz_type = $2) AND ($3::text = '' OR d.biz_id = $3)
       FOR UPDATE SKIP LOCKED
)
UPDATE {{.schema}}.delay_task d
   SET status = 'WAITING', attempts = 0, reclaims = 0, retry_at = NULL, updated_at = now()
  FROM held
 WHERE d.id = held.id
