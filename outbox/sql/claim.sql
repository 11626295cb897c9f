-- One statement claims for all windows: lock, mark SENT, journal.
-- $1 levels (bide.LevelTimer is -1), $2 and $3 the windows' edges in microseconds of remaining time,
-- $4 the most to take for each.
--
-- A fixed delay has a narrow window, and a task that slips out of it goes by a
-- shorter one. There the farthest come first: a relay that is offered more than
-- it can take would otherwise claim what is about to slip, and send nothing.
WITH narrow AS MATERIALIZED (
    SELECT w.level, t.id, t.run_at
      FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::int[]) AS w (level, lo, hi, most)
     CROSS JOIN LATERAL (
        SELECT d.id, d.run_at
          FROM {{.schema}}.delay_task d
         WHERE d.status = 'WAITING'
           AND d.run_at >= now() + w.lo * interval '1 microsecond'
           AND d.run_at <  now() + w.hi * interval '1 microsecond'
         ORDER BY d.run_at DESC
         LIMIT w.most
           FOR UPDATE SKIP LOCKED) t
     WHERE w.level <> -1
), timers AS MATERIALIZED (
    -- A timer's window reaches to the horizon: the nearest come first.
    SELECT w.level, t.id, t.run_at
      FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::int[]) AS w (level, lo, hi, most)
     CROSS JOIN LATERAL (
        SELECT d.id, d.run_at
          FROM {{.schema}}.delay_task d
         WHERE d.status = 'WAITING'
           AND d.run_at >= now() + w.lo * interval '1 microsecond'
           AND d.run_at <  now() + w.hi * interval '1 microsecond'
         ORDER BY d.run_at
         LIMIT w.most
           FOR UPDATE SKIP LOCKED) t
     WHERE w.level = -1
), due AS (
    SELECT * FROM narrow UNION ALL SELECT * FROM timers
), sent AS (
    UPDATE {{.schema}}.delay_task d
       SET status = 'SENT', sends = d.sends + 1, updated_at = now()
      FROM due
     WHERE d.id = due.id
    RETURNING d.id, due.level, due.run_at
), journal AS (
    INSERT INTO {{.schema}}.relay_batch (ids)
    SELECT array_agg(id) FROM sent HAVING count(*) > 0
    RETURNING id
)
-- Without a claim there is still one row, for the clock.
SELECT clock_timestamp(), coalesce(journal.id, 0), coalesce(sent.id, 0), coalesce(sent.level, 0), coalesce(sent.run_at, now())
  FROM (SELECT) AS one
  LEFT JOIN sent ON true
  LEFT JOIN journal ON true
