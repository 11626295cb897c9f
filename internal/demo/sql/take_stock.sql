-- $1 order, whose stock is locked.
UPDATE shop.stock SET on_hand = stock.on_hand - taken.quantity
FROM (SELECT sku, sum(quantity) AS quantity FROM shop.order_lines WHERE order_id = $1 GROUP BY sku) AS taken
WHERE stock.sku = taken.sku
