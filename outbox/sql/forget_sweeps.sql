-- A task that has not been met again for so long has been dealt with.
DELETE FROM {{.schema}}.sweep_batch WHERE begun_at < now() - interval '1 hour'
