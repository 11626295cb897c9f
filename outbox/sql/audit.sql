-- The promises, as far as the ledger can show them: one row for each, with the
-- number of tasks that break it and the ids of a few.
WITH broken AS (
    SELECT 'P1' AS promise, 'no task is overdue by more than a minute' AS claim, id
      FROM {{.schema}}.delay_task
     WHERE status IN ('WAITING', 'SENT') AND run_at < now() - interval '1 minute'
    UNION ALL
    SELECT 'P1', 'no lease ended more than a minute ago', id
      FROM {{.schema}}.delay_task
     WHERE status = 'RUNNING' AND lease_until < now() - interval '1 minute'
    UNION ALL
    SELECT 'P1', 'no task is in two places', d.id
      FROM {{.schema}}.delay_task d JOIN {{.schema}}.delay_task_history h USING (id)
    UNION ALL
    SELECT 'P1', 'no task has failed for good', id
      FROM {{.schema}}.delay_task WHERE status = 'FAILED'
    UNION ALL
    SELECT 'P2', 'no task was executed before its time', id
      FROM {{.schema}}.delay_task_history
     WHERE result IN ('DONE', 'SKIPPED') AND finished_at < fire_at
    UNION ALL
    SELECT 'P4', 'no task was finished twice', id
      FROM {{.schema}}.delay_task_history GROUP BY id HAVING count(*) > 1
)
SELECT c.promise, c.claim, count(b.id), coalesce((array_agg(b.id ORDER BY b.id) FILTER (WHERE b.id IS NOT NULL))[1:10], '{}')
  FROM (VALUES ('P1', 'no task is overdue by more than a minute'),
               ('P1', 'no lease ended more than a minute ago'),
               ('P1', 'no task is in two places'),
               ('P1', 'no task has failed for good'),
               ('P2', 'no task was executed before its time'),
               ('P4', 'no task was finished twice')) AS c (promise, claim)
  LEFT JOIN broken b USING (promise, claim)
 GROUP BY c.promise, c.claim
 ORDER BY c.promise, c.claim
