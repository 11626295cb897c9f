-- Takes over the batches of relays that died: what is still SENT goes back to
-- WAITING and is claimed afresh, at the level that fits by then. A message
-- that did leave becomes a duplicate, which is harmless.
WITH stale AS (
    DELETE FROM {{.schema}}.relay_batch
     WHERE id IN (SELECT b.id FROM {{.schema}}.relay_batch b
                   WHERE b.claimed_at < now() - $1::interval
                   ORDER BY b.id LIMIT 20 FOR UPDATE SKIP LOCKED)
    RETURNING ids
), held AS (
    SELECT d.id FROM {{.schema}}.delay_task d
     WHERE d.id IN (SELECT unnest(ids) FROM stale) AND d.status = 'SENT'
       FOR UPDATE SKIP LOCKED
)
UPDATE {{.schema}}.delay_task d
   SET status = 'WAITING', updated_at = now()
  FROM held
 WHERE d.id = held.id
