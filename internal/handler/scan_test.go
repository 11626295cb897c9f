package handler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// PostgreSQL up to 16 and from 17 on write sub-selects differently; the test
// server is only one of them.
func TestParametersOfEveryPostgreSQL(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ids, payloads, filter string
	}{
		"up to 16": {"InitPlan 1 (returns $0)", "InitPlan 2 (returns $1)", "(id = ANY ($0)) AND ($1 IS NULL) AND (n > $2)"},
		"from 17":  {"InitPlan 1", "InitPlan 2", "(id = ANY ((InitPlan 1).col1)) AND ((InitPlan 2).col1 IS NULL) AND (n > (InitPlan 3).col1)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := scan{Plans: []scan{
				{SubPlan: tt.ids, Output: []string{"NULL::bigint[]"}},
				{SubPlan: tt.payloads, Output: []string{"NULL::jsonb[]"}},
				{SubPlan: "CTE x", Output: []string{"NULL::bigint[]"}},
			}}
			require.Equal(t, "(id = ANY ($1)) AND ($2 IS NULL) AND (n > (sub-select))", withParameters(tt.filter, plan.parameters("bigint[]")))
		})
	}
}
