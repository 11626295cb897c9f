-- Undoes plan_by_index before an application's statement is planned.
SELECT set_config('enable_seqscan', boot.seqscan, true), set_config('enable_bitmapscan', boot.bitmapscan, true),
       set_config('jit', boot.jit, true)
  FROM (SELECT max(reset_val) FILTER (WHERE name = 'enable_seqscan') AS seqscan,
               max(reset_val) FILTER (WHERE name = 'enable_bitmapscan') AS bitmapscan,
               max(reset_val) FILTER (WHERE name = 'jit') AS jit
          FROM pg_settings WHERE name IN ('enable_seqscan', 'enable_bitmapscan', 'jit')) AS boot
