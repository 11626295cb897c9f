SELECT greatest(now() - least(
    (SELECT run_at FROM {{.schema}}.delay_task WHERE status = 'WAITING' ORDER BY run_at LIMIT 1),
    (SELECT run_at FROM {{.schema}}.delay_task WHERE status = 'SENT'    ORDER BY run_at LIMIT 1)), interval '0')
