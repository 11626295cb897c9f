SELECT id::text, (SELECT setting::bigint FROM pg_settings WHERE name = 'deadlock_timeout')
  FROM {{.schema}}.ledger
