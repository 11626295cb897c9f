-- By which way the closes came, and how late they were. $1: whether the sweep's
-- closes count in the percentiles.
WITH closing AS (
    SELECT h.via, 1000 * extract(epoch FROM e.at - o.deadline) AS ms
    FROM shop.order_event e
    JOIN shop.orders o ON o.id = e.order_id
    LEFT JOIN bide.delay_task_history h
        ON h.biz_type = 'close_order' AND h.biz_id = o.id::text AND h.result = 'DONE'
    WHERE e.status = 'CLOSED' AND isfinite(o.deadline)
), ranked AS (
    SELECT ms FROM closing WHERE via = 'broker' OR $1
)
SELECT
    (SELECT count(*) FROM closing WHERE via = 'sweep') AS rescued,
    (SELECT coalesce(round(percentile_cont(0.50) WITHIN GROUP (ORDER BY ms)), 0)::bigint FROM ranked),
    (SELECT coalesce(round(percentile_cont(0.99) WITHIN GROUP (ORDER BY ms)), 0)::bigint FROM ranked),
    (SELECT coalesce(round(max(ms)), 0)::bigint FROM closing),
    (SELECT count(*) FROM bide.delay_task) AS unfinished
