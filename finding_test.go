package bide_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

func TestAFindingSaysWhatAndWhatToDo(t *testing.T) {
	t.Parallel()
	f := bide.Finding{Severity: bide.SeverityWarning, Subject: "queue a", Problem: "is full", Remedy: "purge it"}
	require.Equal(t, "queue a: is full; purge it", f.String())
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.JSONEq(t, `{"severity":"warning","subject":"queue a","problem":"is full","remedy":"purge it"}`, string(text))
	f.Remedy = ""
	require.Equal(t, "queue a: is full", f.String())
}

func TestTheWorstComesFirst(t *testing.T) {
	t.Parallel()
	findings := []bide.Finding{
		{Severity: bide.SeverityInfo, Subject: "a"},
		{Severity: bide.SeverityError, Subject: "c"},
		{Severity: bide.SeverityWarning, Subject: "a"},
		{Severity: bide.SeverityError, Subject: "b"},
	}
	slices.SortFunc(findings, bide.WorstFirst)
	var order []string
	for _, f := range findings {
		order = append(order, f.Severity.String()+" "+f.Subject)
	}
	require.Equal(t, []string{"error b", "error c", "warning a", "info a"}, order)
}

func TestAnErrorsFaultsAreItsFindings(t *testing.T) {
	t.Parallel()
	full := &bide.Fault{Finding: bide.Finding{Severity: bide.SeverityError, Subject: "queue a", Problem: "is full"}, Err: io.EOF}
	gone := &bide.Fault{Finding: bide.Finding{Severity: bide.SeverityError, Subject: "queue b", Problem: "is gone"}}
	plain := errors.New("plain")
	require.EqualError(t, full, "queue a: is full: EOF")
	require.EqualError(t, gone, "queue b: is gone")
	require.ErrorIs(t, full, io.EOF)
	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"no fault":     {plain, []string{"broker: plain"}},
		"one, wrapped": {fmt.Errorf("start: %w", full), []string{"queue a: is full (EOF)"}},
		"several":      {errors.Join(full, plain, gone), []string{"queue a: is full (EOF)", "broker: plain", "queue b: is gone"}},
		"only plain":   {errors.Join(plain, plain), []string{"broker: plain\nplain"}},
	} {
		var got []string
		for _, f := range bide.FindingsOf("broker", tt.err) {
			require.Equal(t, bide.SeverityError, f.Severity)
			got = append(got, f.String())
		}
		require.Equal(t, tt.want, got, name)
	}
}
