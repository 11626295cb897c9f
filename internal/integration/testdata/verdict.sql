-- What the shop itself can prove. Names no table but the shop's.
WITH closing AS (
    SELECT e.order_id, e.began, o.deadline,
           CASE WHEN isfinite(o.deadline) THEN 1000 * extract(epoch FROM e.at - o.deadline) END AS ms
      FROM shop.order_event e JOIN shop.orders o ON o.id = e.order_id
     WHERE e.status = 'CLOSED'
)
SELECT count(*) AS placed,
       count(*) FILTER (WHERE status = 'PAID') AS paid,
       count(*) FILTER (WHERE status = 'CLOSED') AS closed,
       count(*) FILTER (WHERE status = 'UNPAID' AND isfinite(deadline)) AS lost,
       (SELECT count(DISTINCT order_id) FROM closing WHERE began < deadline) AS early,
       (SELECT count(*) FROM (
            SELECT order_id FROM closing GROUP BY order_id
            HAVING count(*) > 1 OR order_id IN (SELECT order_id FROM shop.order_event WHERE status = 'PAID')) AS d) AS double,
       coalesce((SELECT percentile_cont(0.50) WITHIN GROUP (ORDER BY ms) FROM closing), 0)::float8 AS p50,
       coalesce((SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) FROM closing), 0)::float8 AS p99,
       coalesce((SELECT max(ms) FROM closing), 0)::float8 AS max
  FROM shop.orders
