-- The live table's statistics are always out of date: it turns over faster
-- than it is analysed. Every statement here has its index. What has none, such
-- as a scan of the few journal rows, costs more than jit_above_cost by this,
-- and would be compiled for 300 ms to run for one.
SELECT set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true),
       set_config('plan_cache_mode', 'force_custom_plan', true)
