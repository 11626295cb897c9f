SELECT c.relname
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = '{{.schema}}.delay_task_history'::regclass
 ORDER BY c.relname
