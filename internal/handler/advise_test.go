package handler_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdvise(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, `
		CREATE TABLE shop.big (id bigint PRIMARY KEY, ref int UNIQUE, code text, status text NOT NULL DEFAULT 'UNPAID');
		INSERT INTO shop.big SELECT g, g, g FROM generate_series(1, 20000) AS g;
		CREATE TABLE shop.small AS SELECT * FROM shop.big LIMIT 5000;
		ANALYZE shop.big, shop.small`)
	tests := []struct {
		name   string
		fields string
		want   []string
	}{
		{"by the primary key", "lock: shop.big(id)\nsql: UPDATE shop.big SET status = 'CLOSED' WHERE id = ANY ($1) AND status = 'UNPAID' RETURNING id", nil},
		{"by another unique key", "lock: shop.big(ref)\nsql: UPDATE shop.big SET status = $2[1] ->> 'status' WHERE ref = ANY ($1) RETURNING ref", nil},
		{"by a join", "lock: shop.big(id)\nsql: UPDATE shop.big AS b SET status = 'CLOSED' FROM unnest($1, $2) AS u (id, p) WHERE b.id = u.id RETURNING b.id", nil},
		{"small table", "lock: shop.orders(id)\nsql: SELECT id FROM shop.small WHERE id = ANY ($1) AND code > ''", nil},
		{"without lock, by key", "sql: DELETE FROM shop.big WHERE id = ANY ($1::bigint[]) RETURNING id", nil},
		{"without lock, by a cast that no index has", "sql: |\n  DELETE FROM shop.big\n  WHERE id::text = ANY ($1) RETURNING id", []string{
			"h.yaml:3:10: statement reads all of shop.big (about 20000 rows) to find ((big.id)::text = ANY ($1)) for each batch; create an index that its condition can use, or write the condition so that an index fits",
		}},
		{"payloads, and a sub-select of its own", "sql: |\n  SELECT code FROM shop.big\n  WHERE code = ANY ($1) AND status = $2[1] #>> '{}' AND code > (SELECT max(code) FROM shop.small)", []string{
			"h.yaml:3:10: statement reads all of shop.big (about 20000 rows) to find ((big.code > (sub-select)) AND (big.status = (($2)[1] #>> '{}'::text[])) AND (big.code = ANY ($1))) for each batch; create an index that its condition can use, or write the condition so that an index fits",
		}},
		{"a table beside", "lock: shop.big(id)\nsql: SELECT id FROM unnest($1) AS u (id) WHERE EXISTS (SELECT FROM shop.big WHERE code = 'x') AND EXISTS (SELECT FROM shop.big AS b WHERE b.status = 'x')", []string{
			"h.yaml:4:10: statement reads all of shop.big (about 20000 rows) to find (big.code = 'x'::text) for each batch; create an index that its condition can use, or write the condition so that an index fits",
		}},
		{"a lock without an index", "lock: shop.big(code)\nsql: SELECT unnest($1)", []string{
			`h.yaml:3:11: lock reads all of shop.big (about 20000 rows) for each batch; create an index: CREATE UNIQUE INDEX CONCURRENTLY ON "shop"."big" ("code")`,
			"h.yaml:3:11: shop.big(code) is not unique, and a task waits until it has all of its rows; name the primary key, if a task means one row",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set := parse(t, tt.fields)
			require.NoError(t, set.Prepare(t.Context(), shop))
			advice, err := set.Advise(t.Context(), shop)
			require.NoError(t, err)
			var got []string
			for _, a := range advice {
				got = append(got, a.String())
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAdvisePassesOverFaultyHandlers(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	advice, err := parse(t, closeOrder).Advise(t.Context(), shop)
	require.NoError(t, err)
	require.Empty(t, advice)
}
