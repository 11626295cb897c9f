-- An order service's transaction: $1 orders, the first with a deadline $2 from
-- now, each further one $3 after the one before, and a task for each.
WITH placed AS (
    INSERT INTO shop.orders (deadline)
    SELECT now() + $2::interval + n * $3::interval FROM generate_series(0, $1::integer - 1) AS n
    RETURNING id, deadline
)
SELECT id, deadline, bide.schedule('close_order', id::text, deadline) FROM placed ORDER BY id
