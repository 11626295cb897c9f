-- Index-only counts of the states. WAITING may be huge: beyond 100,000 the
-- planner's estimate of the table stands in, less the others.
WITH counted AS (
    SELECT (SELECT count(*) FROM (SELECT FROM {{.schema}}.delay_task WHERE status = 'WAITING' LIMIT 100001) AS w) AS waiting,
           (SELECT count(*) FROM {{.schema}}.delay_task WHERE status = 'SENT')    AS sent,
           (SELECT count(*) FROM {{.schema}}.delay_task WHERE status = 'RUNNING') AS running,
           (SELECT count(*) FROM {{.schema}}.delay_task WHERE status = 'FAILED')  AS failed
)
SELECT CASE WHEN waiting <= 100000 THEN waiting
            ELSE greatest(waiting, (SELECT reltuples::bigint FROM pg_class WHERE oid = '{{.schema}}.delay_task'::regclass) - sent - running - failed)
       END, sent, running, failed
  FROM counted
