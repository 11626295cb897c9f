package handler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]target{
		"shop.orders(id)":                      {"shop", "orders", "id"},
		" shop . orders ( id ) ":               {"shop", "orders", "id"},
		"Shop.ORDERS(Id)":                      {"shop", "orders", "id"},
		"É.Ñ(ü)":                               {"É", "Ñ", "ü"},
		`"Shop"."Or""ders"("a (b).c")`:         {"Shop", `Or"ders`, "a (b).c"},
		`s."t"(k$1)`:                           {"s", "t", "k$1"},
		`a.b(` + strings.Repeat("k", 63) + `)`: {"a", "b", strings.Repeat("k", 63)},
	} {
		got, ok := parseTarget(in)
		require.True(t, ok, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{
		"", "orders", "orders(id)", "shop.orders", "shop.orders()", "shop.orders(id", "shop.orders(id) x",
		"db.shop.orders(id)", "shop.orders(id, line)", "shop.orders(lower(id))", "shop.1(id)", "shop.orders('id')",
		`"".orders(id)`, `shop."orders(id)`, `a.b(` + strings.Repeat("k", 64) + `)`, "shop.orders($1)", "shop.orders[id]",
	} {
		_, ok := parseTarget(in)
		require.False(t, ok, in)
	}
}

func TestTargetIsQuotedAsSQL(t *testing.T) {
	t.Parallel()
	table, key := target{"Shop", `Or"ders`, "select"}.quoted()
	require.Equal(t, `"Shop"."Or""ders"`, table)
	require.Equal(t, `"select"`, key)
}
