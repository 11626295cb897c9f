-- $1 id or 0, $2 biz_type or '', $3 biz_id or '', $4 state or '', $5 least
-- time overdue or null, $6 limit. Planned for its arguments: what is not asked
-- for drops out.
SELECT id, biz_type, biz_id, state, fire_at, run_at, finished_at, coalesce(via, ''),
       sends, attempts, reclaims, coalesce(last_error, ''), created_at, payload
  FROM {{.schema}}.task
 WHERE ($1::bigint = 0 OR id = $1)
   AND ($2::text = '' OR biz_type = $2)
   AND ($3::text = '' OR biz_id = $3)
   AND ($4::text = '' OR state = $4)
   AND ($5::interval IS NULL OR (state IN ('WAITING', 'SENT') AND run_at <= now() - $5))
 ORDER BY coalesce(finished_at, run_at) DESC, id DESC
 LIMIT $6
