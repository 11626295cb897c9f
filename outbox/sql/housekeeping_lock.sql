-- One process at a time, and hardly any waiting for the tables' locks. Whoever
-- comes behind a waiting change waits as long; a change may wait for two locks
-- in turn, and both together must be over before a cancel, which waits for
-- 100 ms, takes housekeeping for an execution.
SELECT pg_try_advisory_xact_lock(hashtext('bide housekeeping {{.schema}}'))
  FROM (SELECT set_config('lock_timeout', '40ms', true)) AS bounded
