-- $1 order. Everyone locks stock in the order of SKUs, so that two orders, or
-- an order and the closing of a batch, cannot deadlock. It is a statement of its
-- own: one that locks and then updates, while others refer to the same rows by
-- foreign keys, came to deadlocks in 3 of 100 runs against itself.
SELECT FROM shop.stock
WHERE sku IN (SELECT sku FROM shop.order_lines WHERE order_id = $1)
ORDER BY sku FOR NO KEY UPDATE
