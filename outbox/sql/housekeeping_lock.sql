-- One process at a time, and no waiting for the tables' locks to speak of.
SELECT pg_try_advisory_xact_lock(hashtext('bide housekeeping {{.schema}}'))
  FROM (SELECT set_config('lock_timeout', '100ms', true)) AS bounded
