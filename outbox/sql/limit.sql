-- $1 and $2 in milliseconds. Local to the transaction: a session setting would
-- leak to others behind a transaction pooler.
SELECT set_config('statement_timeout', $1::text, true),
       set_config('idle_in_transaction_session_timeout', $2::text, true),
       set_config('lock_timeout', '0', true),
       set_config('plan_cache_mode', 'force_custom_plan', true),
       now()
