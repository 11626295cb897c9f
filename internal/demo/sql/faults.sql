-- What the shop itself can prove. Names no table but the shop's.
WITH closing AS (
    SELECT e.order_id, e.began, o.deadline
    FROM shop.order_event e JOIN shop.orders o ON o.id = e.order_id
    WHERE e.status = 'CLOSED'
), paying AS (
    SELECT order_id FROM shop.order_event WHERE status = 'PAID'
    UNION
    SELECT order_id FROM shop.payments
), closed_twice_or_paid AS (
    SELECT order_id FROM closing GROUP BY order_id
    HAVING count(*) > 1 OR order_id IN (SELECT order_id FROM paying)
), per_sku AS (
    SELECT s.sku,
        s.on_hand - s.received AS shelf,
        (SELECT coalesce(sum(m.delta), 0) FROM shop.stock_movement m WHERE m.sku = s.sku) AS moved,
        (SELECT coalesce(-sum(l.quantity), 0)
         FROM shop.order_lines l JOIN shop.orders o ON o.id = l.order_id
         WHERE l.sku = s.sku AND o.status <> 'CLOSED') AS owed
    FROM shop.stock s
)
SELECT
    (SELECT count(*) FROM shop.orders),
    (SELECT count(*) FROM shop.orders WHERE status = 'PAID'),
    (SELECT count(*) FROM shop.orders WHERE status = 'CLOSED'),
    (SELECT count(*) FROM shop.orders WHERE status = 'UNPAID') AS lost,
    (SELECT count(DISTINCT order_id) FROM closing WHERE began < deadline) AS early,
    (SELECT count(*) FROM closed_twice_or_paid) AS double,
    (SELECT sum(greatest(abs(shelf - owed), abs(shelf - moved))) FROM per_sku)::bigint AS stock_drift
