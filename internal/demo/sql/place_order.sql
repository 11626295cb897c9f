-- $1 time to pay, $2 SKUs and $3 quantities of the lines.
WITH placed AS (
    INSERT INTO shop.orders (deadline) VALUES (now() + $1::interval) RETURNING id
), lines AS (
    INSERT INTO shop.order_lines (order_id, line_no, sku, quantity)
    SELECT placed.id, line.no, line.sku, line.quantity
    FROM placed, unnest($2::integer[], $3::integer[]) WITH ORDINALITY AS line (sku, quantity, no)
)
SELECT id FROM placed
