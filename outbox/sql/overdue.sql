-- What lock_due would find, without locking it.
SELECT * FROM (
    SELECT now(), d.id, d.biz_type, d.run_at, d.status::text, d.sends, d.reclaims
      FROM {{.schema}}.delay_task d
     WHERE d.status = 'WAITING' AND d.run_at >= $2::timestamptz AND d.run_at <= now()
       AND d.biz_type = ANY ($1::text[])
     ORDER BY d.run_at LIMIT $5) AS waiting
UNION ALL
SELECT * FROM (
    SELECT now(), d.id, d.biz_type, d.run_at, d.status::text, d.sends, d.reclaims
      FROM {{.schema}}.delay_task d
     WHERE d.status = 'SENT' AND d.run_at >= $3::timestamptz AND d.run_at <= now() - $4::interval
       AND d.biz_type = ANY ($1::text[])
     ORDER BY d.run_at LIMIT $5) AS sent
UNION ALL
SELECT now(), 0, '', now(), '', 0, 0 -- for the clock
