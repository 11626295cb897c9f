-- Index-only counts of the states. Of those that may be huge no more than 100,001
-- are counted; beyond, the partial index's size by the last vacuum stands in.
WITH counted AS (
    SELECT (SELECT count(*) FROM (SELECT FROM {{.schema}}.delay_task WHERE status = 'WAITING' LIMIT 100001) AS w) AS waiting,
           (SELECT count(*) FROM (SELECT FROM {{.schema}}.delay_task WHERE status = 'SENT' LIMIT 100001) AS s) AS sent,
           (SELECT count(*) FROM {{.schema}}.delay_task WHERE status = 'RUNNING') AS running,
           (SELECT count(*) FROM {{.schema}}.delay_task WHERE status = 'FAILED') AS failed
)
SELECT CASE WHEN waiting <= 100000 THEN waiting
            ELSE greatest(waiting, (SELECT reltuples::bigint FROM pg_class WHERE oid = '{{.schema}}.delay_task_waiting'::regclass)) END,
       CASE WHEN sent <= 100000 THEN sent
            ELSE greatest(sent, (SELECT reltuples::bigint FROM pg_class WHERE oid = '{{.schema}}.delay_task_sent'::regclass)) END,
       running, failed
  FROM counted
