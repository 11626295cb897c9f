-- What became of the tasks that messages name. Reads only. There is always a
-- row, for the clock.
SELECT clock_timestamp(), coalesce(d.id, 0), coalesce(d.biz_type, ''), coalesce(d.run_at, now()),
       coalesce(d.status::text, ''), coalesce(d.sends, 0), coalesce(d.reclaims, 0)
  FROM (SELECT) AS one
  LEFT JOIN {{.schema}}.delay_task d ON d.id = ANY ($1::bigint[])
