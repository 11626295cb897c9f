-- Ends batch $1 and gives back the tasks $2, which the broker did not take.
-- A task that is no longer SENT belongs to somebody else by now, and a batch
-- whose row is gone was given back by another relay.
WITH batch AS (
    DELETE FROM {{.schema}}.relay_batch WHERE id = $1 RETURNING id
), held AS (
    SELECT d.id FROM {{.schema}}.delay_task d
     WHERE d.id = ANY ($2::bigint[]) AND d.status = 'SENT'
       FOR UPDATE SKIP LOCKED
)
UPDATE {{.schema}}.delay_task d
   SET status = 'WAITING', updated_at = now()
  FROM held
 WHERE d.id = held.id AND EXISTS (SELECT FROM batch)
