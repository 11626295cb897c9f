package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// A script tells a call that can never work from an answer that is no.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no command":            {nil, "expected one of"},
		"unknown command":       {[]string{"frob"}, "unexpected argument frob"},
		"missing argument":      {[]string{"cancel", "close_order"}, "<biz-id>"},
		"not a delay":           {[]string{"plan", "soon"}, "invalid duration"},
		"unknown state":         {[]string{"tasks", "--state", "LOST"}, "--state must be one of"},
		"no room for an answer": {[]string{"tasks", "--limit", "0"}, "--limit=0: want at least 1"},
		"no tasks named":        {[]string{"requeue"}, "say which tasks"},
		"all and some":          {[]string{"requeue", "--all", "--id", "7"}, "say which tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			require.Equal(t, exitUsage, run(tt.args, &out, &errs))
			require.Contains(t, errs.String(), tt.says)
			require.Empty(t, out.String())
		})
	}
}
