-- The live table's statistics are always out of date: it turns over faster
-- than it is analysed. Every statement here has its index.
SELECT set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('plan_cache_mode', 'force_custom_plan', true)
