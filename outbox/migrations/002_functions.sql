-- What an application calls, in its own transaction, in any language.
--
-- SECURITY DEFINER, because ON CONFLICT and DELETE … RETURNING need more
-- rights on the tables than an application should have; hence the pinned
-- search_path and the revoked EXECUTE. force_custom_plan, because a generic
-- plan cached while the table was small scans it whole once it is not.

-- A key that names no task is a caller's mistake; an answer would hide it.
CREATE FUNCTION {{.schema}}.refuse_null(call text, biz_type text, biz_id text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF $2 IS NULL OR $3 IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = format('%s: %s is null', $1, CASE WHEN $2 IS NULL THEN 'biz_type' ELSE 'biz_id' END),
            HINT = 'Give the type and the id that the task was scheduled with.';
    END IF;
END $$;
COMMENT ON FUNCTION {{.schema}}.refuse_null(text, text, text) IS 'Refuses a call without a whole key.';

CREATE FUNCTION {{.schema}}.schedule(biz_type text, biz_id text, fire_at timestamptz, payload jsonb DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {{.schema}}, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_id      bigint;
    v_created boolean;
BEGIN
    PERFORM refuse_null('schedule', $1, $2);
    IF $3 IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'schedule: fire_at is null', HINT = 'Give a timestamp with time zone.';
    END IF;
    IF has_fired($1, $2, $3) THEN
        RETURN 'finished';
    END IF;
    -- The last word wins, also over a task that a worker is running or that
    -- has failed. DO NOTHING would lose the new task in both cases.
    INSERT INTO delay_task AS t (biz_type, biz_id, fire_at, payload) VALUES ($1, $2, $3, $4)
    ON CONFLICT ON CONSTRAINT delay_task_key DO UPDATE
       SET fire_at = excluded.fire_at, retry_at = NULL, payload = excluded.payload,
           status = 'WAITING', sends = 0, attempts = 0, reclaims = 0,
           claim_token = NULL, lease_until = NULL, last_error = NULL, updated_at = now()
     WHERE t.fire_at <> excluded.fire_at OR t.status = 'FAILED'
    RETURNING t.id, t.xmax = 0 INTO v_id, v_created;
    IF v_id IS NULL THEN
        -- Unchanged, and locked by the conflict.
        SELECT t.id INTO v_id FROM delay_task t WHERE t.biz_id = $2 AND t.biz_type = $1;
        UPDATE delay_task t SET payload = $4, updated_at = now() WHERE t.id = v_id AND t.payload IS DISTINCT FROM $4;
    END IF;
    IF v_created IS NOT TRUE THEN
        -- What was requested during an execution is not the last word any more.
        DELETE FROM delay_task_request r WHERE r.task_id = v_id;
        RETURN CASE WHEN v_created IS NULL THEN 'unchanged' ELSE 'moved' END;
    END IF;
    -- The insert may have waited for a worker that was finishing this very
    -- task. This statement's snapshot is younger than that wait.
    IF has_fired($1, $2, $3) THEN
        DELETE FROM delay_task t WHERE t.id = v_id;
        RETURN 'finished';
    END IF;
    RETURN 'created';
END $$;
COMMENT ON FUNCTION {{.schema}}.schedule(text, text, timestamptz, jsonb) IS
    'Do biz_type for biz_id at fire_at. Answers created; unchanged (same key and time); moved (same key, other time); finished (this very key and time has fired).';

-- Looked up only when the time has passed: a future time cannot have fired.
CREATE FUNCTION {{.schema}}.has_fired(biz_type text, biz_id text, fire_at timestamptz)
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, {{.schema}}, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    RETURN $3 <= clock_timestamp() AND EXISTS (
        SELECT FROM delay_task_history h
         WHERE h.biz_id = $2 AND h.biz_type = $1 AND h.fire_at = $3
           AND h.finished_at >= $3 AND h.result IN ('DONE', 'SKIPPED'));
END $$;
COMMENT ON FUNCTION {{.schema}}.has_fired(text, text, timestamptz) IS 'Whether this very key and time has been executed.';

CREATE FUNCTION {{.schema}}.schedule_in(biz_type text, biz_id text, delay interval, payload jsonb DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {{.schema}}, pg_temp
AS $$
BEGIN
    IF $3 IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'schedule_in: delay is null', HINT = 'Give an interval such as ''30 minutes''.';
    END IF;
    RETURN schedule($1, $2, now() + $3, $4);
END $$;
COMMENT ON FUNCTION {{.schema}}.schedule_in(text, text, interval, jsonb) IS
    'schedule at now() + delay, by this database''s clock.';

-- For cancel, and for the operator, who owns the schema: via says which.
CREATE FUNCTION {{.schema}}.cancel_as(biz_type text, biz_id text, via {{.schema}}.task_via)
RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, {{.schema}}, pg_temp
SET plan_cache_mode = force_custom_plan
SET lock_timeout = '100ms'
AS $$
DECLARE
    v_id     bigint;
    v_result task_result;
BEGIN
    PERFORM refuse_null('cancel', $1, $2);
    -- A relay's claim is shorter than 100 ms. A longer holder is a worker in
    -- the middle of this task; SKIP LOCKED would lose to both alike.
    BEGIN
        WITH gone AS (
            DELETE FROM delay_task t WHERE t.biz_id = $2 AND t.biz_type = $1 AND t.status <> 'RUNNING'
            RETURNING t.*
        )
        INSERT INTO delay_task_history (id, biz_type, biz_id, fire_at, result, via,
               sends, attempts, reclaims, payload, last_error, created_at)
        SELECT g.id, g.biz_type, g.biz_id, g.fire_at, 'CANCELLED', $3,
               g.sends, g.attempts, g.reclaims, g.payload, g.last_error, g.created_at
          FROM gone g;
        IF FOUND THEN
            RETURN 'cancelled';
        END IF;
    EXCEPTION WHEN lock_not_available OR serialization_failure THEN
        NULL; -- in execution: leave a request below
    END;
    SELECT t.id INTO v_id FROM delay_task t WHERE t.biz_id = $2 AND t.biz_type = $1;
    IF FOUND THEN
        INSERT INTO delay_task_request (task_id, via) VALUES (v_id, $3);
        RETURN 'requested';
    END IF;
    SELECT h.result INTO v_result FROM delay_task_history h
     WHERE h.biz_id = $2 AND h.biz_type = $1 ORDER BY h.finished_at DESC LIMIT 1;
    RETURN CASE v_result WHEN 'CANCELLED' THEN 'cancelled' WHEN 'DONE' THEN 'too_late'
                         WHEN 'SKIPPED' THEN 'too_late' ELSE 'not_found' END;
END $$;
COMMENT ON FUNCTION {{.schema}}.cancel_as(text, text, {{.schema}}.task_via) IS 'cancel, by whom.';

CREATE FUNCTION {{.schema}}.cancel(biz_type text, biz_id text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {{.schema}}, pg_temp
AS $$
BEGIN
    RETURN cancel_as($1, $2, 'application');
END $$;
COMMENT ON FUNCTION {{.schema}}.cancel(text, text) IS
    'Withdraw a task. Waits 100 ms at most. Answers cancelled; requested (in execution now: honoured if that rolls back or retries); too_late (it has fired); not_found.';

CREATE FUNCTION {{.schema}}.cancel_all(biz_id text)
RETURNS TABLE (biz_type text, outcome text) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {{.schema}}, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
BEGIN
    PERFORM refuse_null('cancel_all', '', $1);
    FOR biz_type IN SELECT t.biz_type FROM delay_task t WHERE t.biz_id = $1 ORDER BY t.biz_type LOOP
        outcome := cancel(cancel_all.biz_type, $1);
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION {{.schema}}.cancel_all(text) IS
    'cancel every live task of biz_id; one row for each with its answer.';

CREATE FUNCTION {{.schema}}.reschedule(biz_type text, biz_id text, fire_at timestamptz)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {{.schema}}, pg_temp
SET plan_cache_mode = force_custom_plan
SET lock_timeout = '100ms'
AS $$
DECLARE
    v_id   bigint;
    v_same boolean;
BEGIN
    PERFORM refuse_null('reschedule', $1, $2);
    IF $3 IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'reschedule: fire_at is null', HINT = 'Give a timestamp with time zone, or call cancel.';
    END IF;
    BEGIN
        SELECT t.id, t.fire_at = $3 AND t.status <> 'FAILED' INTO v_id, v_same
          FROM delay_task t
         WHERE t.biz_id = $2 AND t.biz_type = $1 AND t.status <> 'RUNNING'
           FOR NO KEY UPDATE;
        IF FOUND THEN
            DELETE FROM delay_task_request r WHERE r.task_id = v_id; -- this is the last word
            IF v_same THEN
                RETURN 'unchanged';
            END IF;
            UPDATE delay_task t
               SET fire_at = $3, retry_at = NULL, status = 'WAITING', sends = 0, attempts = 0,
                   reclaims = 0, last_error = NULL, updated_at = now()
             WHERE t.id = v_id;
            RETURN 'moved';
        END IF;
    EXCEPTION WHEN lock_not_available OR serialization_failure THEN
        NULL; -- in execution: leave a request below
    END;
    SELECT t.id INTO v_id FROM delay_task t WHERE t.biz_id = $2 AND t.biz_type = $1;
    IF FOUND THEN
        INSERT INTO delay_task_request (task_id, fire_at) VALUES (v_id, $3);
        RETURN 'requested';
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM delay_task_history h WHERE h.biz_id = $2 AND h.biz_type = $1)
           THEN 'too_late' ELSE 'not_found' END;
END $$;
COMMENT ON FUNCTION {{.schema}}.reschedule(text, text, timestamptz) IS
    'Move a live task to another time. Waits 100 ms at most. Answers moved; unchanged; requested (in execution now: honoured if that rolls back or retries); too_late (it has ended); not_found.';

-- Housekeeping. Attaching a table made beforehand takes a lock that readers
-- and writers of history tolerate; CREATE … PARTITION OF does not. The caller
-- sets lock_timeout, since even a queued ATTACH holds up others.
CREATE FUNCTION {{.schema}}.history_add_day(day date) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, {{.schema}}, pg_temp
AS $$
DECLARE
    v_name text        := 'delay_task_history_' || to_char($1, 'YYYYMMDD');
    v_from timestamptz := $1::timestamp AT TIME ZONE 'UTC';
    v_to   timestamptz := ($1 + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    IF to_regclass(format('{{.schema}}.%I', v_name)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE {{.schema}}.%I (LIKE {{.schema}}.delay_task_history INCLUDING ALL)', v_name);
    -- Rows that fell into the default partition while nobody kept house would
    -- make the ATTACH fail.
    EXECUTE format('WITH stray AS (DELETE FROM {{.schema}}.delay_task_history_default
                     WHERE finished_at >= %L AND finished_at < %L RETURNING *)
                    INSERT INTO {{.schema}}.%I SELECT * FROM stray', v_from, v_to, v_name);
    EXECUTE format('ALTER TABLE {{.schema}}.delay_task_history ATTACH PARTITION {{.schema}}.%I FOR VALUES FROM (%L) TO (%L)',
                   v_name, v_from, v_to);
    RETURN true;
END $$;
COMMENT ON FUNCTION {{.schema}}.history_add_day(date) IS 'Makes the partition for one UTC day; false where it exists.';

SELECT {{.schema}}.history_add_day((now() AT TIME ZONE 'UTC')::date + n) FROM generate_series(0, 7) AS n;

REVOKE ALL ON ALL TABLES    IN SCHEMA {{.schema}} FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {{.schema}} FROM PUBLIC;
