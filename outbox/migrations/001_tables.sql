-- The ledger's tables. {{.schema}} is the configured schema; it exists by now.

CREATE TYPE {{.schema}}.task_state  AS ENUM ('WAITING', 'SENT', 'RUNNING', 'FAILED');
CREATE TYPE {{.schema}}.task_result AS ENUM ('DONE', 'SKIPPED', 'CANCELLED');
CREATE TYPE {{.schema}}.task_via    AS ENUM ('broker', 'sweep', 'application', 'operator');
COMMENT ON TYPE {{.schema}}.task_state  IS 'Where a live task stands.';
COMMENT ON TYPE {{.schema}}.task_result IS 'How a task ended.';
COMMENT ON TYPE {{.schema}}.task_via    IS 'By which way a task came to its end.';

COMMENT ON TABLE  {{.schema}}.schema_version IS 'One row: which migrations have run.';
COMMENT ON COLUMN {{.schema}}.schema_version.version IS 'The number of the last one.';

CREATE TABLE {{.schema}}.ledger (
    id         uuid        NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now(),
    singleton  boolean     PRIMARY KEY DEFAULT true CHECK (singleton)
);
COMMENT ON TABLE  {{.schema}}.ledger IS 'One row: which ledger this is.';
COMMENT ON COLUMN {{.schema}}.ledger.id IS 'Part of every message and of every queue, topic and group name, so that two ledgers on one broker never take each other''s messages. Give a copied database a new one.';
COMMENT ON COLUMN {{.schema}}.ledger.created_at IS 'When the ledger was first migrated.';
COMMENT ON COLUMN {{.schema}}.ledger.singleton IS 'Keeps the table to one row.';
INSERT INTO {{.schema}}.ledger DEFAULT VALUES;

-- Live tasks only: a finished task moves to history in the statement that
-- finishes it, so this table and its indexes stay as small as the backlog.
-- Fixed-width columns come first to spare the padding.
CREATE TABLE {{.schema}}.delay_task (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fire_at     timestamptz NOT NULL,
    retry_at    timestamptz,
    -- greatest() ignores null, and a retry can never run before the promise.
    run_at      timestamptz NOT NULL GENERATED ALWAYS AS (greatest(fire_at, retry_at)) STORED,
    lease_until timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    claim_token uuid,
    status      {{.schema}}.task_state NOT NULL DEFAULT 'WAITING',
    sends       integer     NOT NULL DEFAULT 0 CHECK (sends >= 0),
    attempts    integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    reclaims    integer     NOT NULL DEFAULT 0 CHECK (reclaims >= 0),
    biz_type    text        NOT NULL,
    biz_id      text        NOT NULL,
    payload     jsonb,
    last_error  text,
    -- By order first: all tasks of one order are one index probe away.
    CONSTRAINT delay_task_key UNIQUE (biz_id, biz_type),
    CONSTRAINT biz_type_has_1_to_512_bytes CHECK (octet_length(biz_type) BETWEEN 1 AND 512),
    CONSTRAINT biz_id_has_1_to_512_bytes   CHECK (octet_length(biz_id) BETWEEN 1 AND 512),
    -- Infinity would break every "run_at - now()"; the bounds keep sums in range.
    CONSTRAINT fire_at_is_between_the_years_1970_and_3000
        CHECK (fire_at >= '1970-01-01 00:00:00+00' AND fire_at < '3000-01-01 00:00:00+00'),
    CONSTRAINT retry_at_is_between_the_years_1970_and_3000
        CHECK (retry_at >= '1970-01-01 00:00:00+00' AND retry_at < '3000-01-01 00:00:00+00'),
    CONSTRAINT payload_has_at_most_65536_bytes CHECK (octet_length(payload::text) <= 65536),
    CONSTRAINT lease_and_token_belong_to_running
        CHECK ((status = 'RUNNING') = (lease_until IS NOT NULL) AND (status = 'RUNNING') = (claim_token IS NOT NULL))
) WITH (
    -- A queue's table turns over completely many times a day: vacuum by count,
    -- fast, and never take the exclusive lock that truncating the file needs.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000,
    vacuum_truncate = false
);
CREATE INDEX delay_task_waiting ON {{.schema}}.delay_task (run_at) WHERE status = 'WAITING';
CREATE INDEX delay_task_sent    ON {{.schema}}.delay_task (run_at) WHERE status = 'SENT';
CREATE INDEX delay_task_running ON {{.schema}}.delay_task (lease_until) WHERE status = 'RUNNING';
CREATE INDEX delay_task_failed  ON {{.schema}}.delay_task (id) WHERE status = 'FAILED';

COMMENT ON TABLE  {{.schema}}.delay_task IS 'Live tasks: do biz_type for biz_id at fire_at. Insert biz_type, biz_id and fire_at (and payload); leave the rest to its defaults.';
COMMENT ON COLUMN {{.schema}}.delay_task.id IS 'What a broker message carries.';
COMMENT ON COLUMN {{.schema}}.delay_task.biz_type IS 'Names the handler. 1 to 512 bytes.';
COMMENT ON COLUMN {{.schema}}.delay_task.biz_id IS 'What to act on, for example the order''s id as text. 1 to 512 bytes. One live task per (biz_id, biz_type).';
COMMENT ON COLUMN {{.schema}}.delay_task.fire_at IS 'The promise: no effect before this time by this database''s clock. A time in the past fires at once.';
COMMENT ON COLUMN {{.schema}}.delay_task.retry_at IS 'Earliest next attempt after a failed one.';
COMMENT ON COLUMN {{.schema}}.delay_task.run_at IS 'When the task is due: the later of fire_at and retry_at.';
COMMENT ON COLUMN {{.schema}}.delay_task.status IS 'WAITING: only here. SENT: handed to a broker. RUNNING: leased to a worker that acts outside the database. FAILED: given up; see last_error, then requeue or cancel.';
COMMENT ON COLUMN {{.schema}}.delay_task.sends IS 'How often the task was handed to a broker.';
COMMENT ON COLUMN {{.schema}}.delay_task.attempts IS 'Executions that failed.';
COMMENT ON COLUMN {{.schema}}.delay_task.reclaims IS 'Executions begun after an earlier one ended without a word, as when the worker was killed.';
COMMENT ON COLUMN {{.schema}}.delay_task.claim_token IS 'RUNNING only: fences off a worker that has lost its lease.';
COMMENT ON COLUMN {{.schema}}.delay_task.lease_until IS 'RUNNING only: when the lease ends.';
COMMENT ON COLUMN {{.schema}}.delay_task.payload IS 'JSON for the handler, at most 65536 bytes as text.';
COMMENT ON COLUMN {{.schema}}.delay_task.last_error IS 'Why the last attempt failed.';
COMMENT ON COLUMN {{.schema}}.delay_task.created_at IS 'When the row was inserted.';
COMMENT ON COLUMN {{.schema}}.delay_task.updated_at IS 'When the row last changed.';

CREATE TABLE {{.schema}}.delay_task_history (
    id          bigint      NOT NULL,
    fire_at     timestamptz NOT NULL,
    finished_at timestamptz NOT NULL DEFAULT now(),
    created_at  timestamptz NOT NULL,
    result      {{.schema}}.task_result NOT NULL,
    via         {{.schema}}.task_via NOT NULL,
    sends       integer     NOT NULL,
    attempts    integer     NOT NULL,
    reclaims    integer     NOT NULL,
    biz_type    text        NOT NULL,
    biz_id      text        NOT NULL,
    payload     jsonb,
    last_error  text
) PARTITION BY RANGE (finished_at);
CREATE INDEX delay_task_history_key ON {{.schema}}.delay_task_history (biz_id, biz_type);
-- Ids rise with time, so a block range index finds one for next to no WAL.
CREATE INDEX delay_task_history_id ON {{.schema}}.delay_task_history USING brin (id) WITH (pages_per_range = 16);
CREATE TABLE {{.schema}}.delay_task_history_default PARTITION OF {{.schema}}.delay_task_history DEFAULT;

COMMENT ON TABLE  {{.schema}}.delay_task_history IS 'Finished tasks, one partition a day (UTC) of finished_at.';
COMMENT ON TABLE  {{.schema}}.delay_task_history_default IS 'Catches finished tasks for which no day exists; empty while housekeeping runs.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.id IS 'The task''s id while it lived.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.biz_type IS 'The handler''s name.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.biz_id IS 'What was acted on.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.fire_at IS 'The promise.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.finished_at IS 'Start of the transaction that finished the task; never before fire_at unless it was cancelled.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.result IS 'DONE: the handler acted. SKIPPED: its recheck found nothing to do. CANCELLED: withdrawn.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.via IS 'broker: a message arrived. sweep: the scan found it overdue. application, operator: who cancelled it.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.sends IS 'How often it was handed to a broker.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.attempts IS 'Executions that had failed before.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.reclaims IS 'Executions that had ended without a word before.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.payload IS 'The application''s JSON.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.last_error IS 'The last failure, or why it was skipped.';
COMMENT ON COLUMN {{.schema}}.delay_task_history.created_at IS 'When the task was inserted.';

-- One row per batch in a relay's hands, not one write per task.
CREATE TABLE {{.schema}}.relay_batch (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    ids        bigint[]    NOT NULL
) WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, vacuum_truncate = false);
COMMENT ON TABLE  {{.schema}}.relay_batch IS 'Batches that a relay has claimed and the broker has not confirmed. A row older than the lease belongs to a dead relay; its tasks go back to WAITING.';
COMMENT ON COLUMN {{.schema}}.relay_batch.id IS 'The batch.';
COMMENT ON COLUMN {{.schema}}.relay_batch.claimed_at IS 'When it was claimed.';
COMMENT ON COLUMN {{.schema}}.relay_batch.ids IS 'The tasks.';

-- Written and committed by the sweep before it acts, deleted by the
-- transaction that acts: whoever later locks a task that stands here knows
-- that its execution died.
CREATE TABLE {{.schema}}.sweep_batch (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    begun_at   timestamptz NOT NULL DEFAULT now(),
    ids        bigint[]    NOT NULL
) WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, vacuum_truncate = false);
COMMENT ON TABLE  {{.schema}}.sweep_batch IS 'Batches that a sweep is executing. A task that is free again while it stands here has cost a worker its life, and is tried alone.';
COMMENT ON COLUMN {{.schema}}.sweep_batch.id IS 'The batch.';
COMMENT ON COLUMN {{.schema}}.sweep_batch.begun_at IS 'When the execution began.';
COMMENT ON COLUMN {{.schema}}.sweep_batch.ids IS 'The tasks.';

-- Append-only, so that two requests never wait for each other; the last counts.
CREATE TABLE {{.schema}}.delay_task_request (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id      bigint      NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    fire_at      timestamptz,
    via          {{.schema}}.task_via NOT NULL DEFAULT 'application',
    CONSTRAINT fire_at_is_between_the_years_1970_and_3000
        CHECK (fire_at >= '1970-01-01 00:00:00+00' AND fire_at < '3000-01-01 00:00:00+00')
) WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX delay_task_request_task ON {{.schema}}.delay_task_request (task_id);
COMMENT ON TABLE  {{.schema}}.delay_task_request IS 'Cancels and reschedules that met a task in execution; honoured if that execution rolls back or retries.';
COMMENT ON COLUMN {{.schema}}.delay_task_request.id IS 'Order of the requests.';
COMMENT ON COLUMN {{.schema}}.delay_task_request.task_id IS 'The task. Not a foreign key: that would wait for the task''s row.';
COMMENT ON COLUMN {{.schema}}.delay_task_request.requested_at IS 'When it was asked.';
COMMENT ON COLUMN {{.schema}}.delay_task_request.fire_at IS 'The new time; null to cancel.';
COMMENT ON COLUMN {{.schema}}.delay_task_request.via IS 'Who asked: application or operator.';

CREATE VIEW {{.schema}}.task AS
SELECT id, biz_type, biz_id, fire_at, run_at, status::text AS state, NULL::text AS via,
       sends, attempts, reclaims, payload, last_error, created_at, NULL::timestamptz AS finished_at
  FROM {{.schema}}.delay_task
UNION ALL
SELECT id, biz_type, biz_id, fire_at, NULL, result::text, via::text,
       sends, attempts, reclaims, payload, last_error, created_at, finished_at
  FROM {{.schema}}.delay_task_history;
COMMENT ON VIEW {{.schema}}.task IS 'What became of an order: live and finished tasks together. Ask by biz_id.';
COMMENT ON COLUMN {{.schema}}.task.id IS 'The task''s number.';
COMMENT ON COLUMN {{.schema}}.task.biz_type IS 'The handler''s name.';
COMMENT ON COLUMN {{.schema}}.task.biz_id IS 'What is acted on.';
COMMENT ON COLUMN {{.schema}}.task.fire_at IS 'The promise: no effect before this time.';
COMMENT ON COLUMN {{.schema}}.task.run_at IS 'When it is due: the later of fire_at and the next attempt. Null once it has ended.';
COMMENT ON COLUMN {{.schema}}.task.state IS 'WAITING, SENT, RUNNING or FAILED while it lives; DONE, SKIPPED or CANCELLED once it has ended.';
COMMENT ON COLUMN {{.schema}}.task.via IS 'By which way it ended: broker, sweep, application or operator.';
COMMENT ON COLUMN {{.schema}}.task.sends IS 'How often it was handed to a broker.';
COMMENT ON COLUMN {{.schema}}.task.attempts IS 'Executions that failed.';
COMMENT ON COLUMN {{.schema}}.task.reclaims IS 'Executions that ended without a word.';
COMMENT ON COLUMN {{.schema}}.task.payload IS 'The application''s JSON.';
COMMENT ON COLUMN {{.schema}}.task.last_error IS 'Why the last attempt failed, or why it was skipped.';
COMMENT ON COLUMN {{.schema}}.task.created_at IS 'When it was scheduled.';
COMMENT ON COLUMN {{.schema}}.task.finished_at IS 'When it ended; null while it lives.';
