DELETE FROM {{.schema}}.sweep_batch WHERE id = $1
