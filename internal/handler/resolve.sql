-- Pairs ids that are equal though spelled differently, such as 0 and 00 or 1.5
-- and 1.50: positions in $1, those returned, with positions in $2, those asked.
SELECT returned.n, asked.n
FROM unnest($1) WITH ORDINALITY AS returned (id, n)
JOIN unnest($2) WITH ORDINALITY AS asked (id, n) ON asked.id = returned.id
