-- What an application's role needs; $1 cannot stand for a role, so the caller
-- quotes it in.
GRANT USAGE ON SCHEMA {{.schema}} TO {{.role}};
GRANT EXECUTE ON FUNCTION
    {{.schema}}.schedule(text, text, timestamptz, jsonb),
    {{.schema}}.schedule_in(text, text, interval, jsonb),
    {{.schema}}.cancel(text, text),
    {{.schema}}.cancel_all(text),
    {{.schema}}.reschedule(text, text, timestamptz)
TO {{.role}};
GRANT INSERT (biz_type, biz_id, fire_at, payload) ON {{.schema}}.delay_task TO {{.role}};
GRANT SELECT ON {{.schema}}.task TO {{.role}};
