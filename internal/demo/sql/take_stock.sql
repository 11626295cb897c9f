-- $1 order. Everyone locks stock in the order of SKUs, so that two orders, or
-- an order and the closing of a batch, cannot deadlock.
WITH taken AS (
    SELECT sku, sum(quantity) AS quantity FROM shop.order_lines WHERE order_id = $1 GROUP BY sku
), locked AS (
    SELECT sku FROM shop.stock WHERE sku IN (SELECT sku FROM taken) ORDER BY sku FOR NO KEY UPDATE
)
UPDATE shop.stock SET on_hand = stock.on_hand - taken.quantity
FROM taken JOIN locked USING (sku)
WHERE stock.sku = taken.sku
