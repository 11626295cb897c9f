-- The days that need a partition: today, $1 to come, and past ones whose rows
-- fell into the default partition because nobody kept house.
SELECT (now() AT TIME ZONE 'UTC')::date + n FROM generate_series(0, $1::int) AS n
 UNION
SELECT (finished_at AT TIME ZONE 'UTC')::date FROM {{.schema}}.delay_task_history_default
 ORDER BY 1
