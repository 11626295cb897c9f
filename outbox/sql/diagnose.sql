-- What an operator should know of the ledger's database, in one row.
SELECT current_setting('server_version_num')::int,
       current_setting('default_transaction_isolation'),
       (SELECT setting::bigint FROM pg_settings WHERE name = 'deadlock_timeout'),
       (SELECT count(*) FROM {{.schema}}.delay_task_history_default),
       (SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = '{{.schema}}.delay_task_history'::regclass
           AND c.relname > 'delay_task_history_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')
           AND c.relname <> 'delay_task_history_default'),
       pg_has_role((SELECT relowner FROM pg_class WHERE oid = '{{.schema}}.delay_task_history'::regclass), 'USAGE'),
       (SELECT count(*) FROM {{.schema}}.delay_task WHERE status = 'FAILED'),
       (SELECT count(*) FROM {{.schema}}.relay_batch WHERE claimed_at < now() - interval '2 minutes'),
       coalesce((SELECT max(now() - xact_start) FROM pg_stat_activity
                  WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()), interval '0')
