SELECT count(*) FILTER (WHERE status = 'UNPAID'),
       count(*) FILTER (WHERE status = 'PAID'),
       count(*) FILTER (WHERE status = 'CLOSED'),
       (SELECT count(*) FROM bide.delay_task)
FROM shop.orders
