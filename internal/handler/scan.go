package handler

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// scan is a node of a plan in EXPLAIN's JSON form.
type scan struct {
	Type    string   `json:"Node Type"`
	Schema  string   `json:"Schema"`
	Table   string   `json:"Relation Name"`
	Filter  string   `json:"Filter"`
	SubPlan string   `json:"Subplan Name"`
	Output  []string `json:"Output"`
	Plans   []scan   `json:"Plans"`
	// rows is the table's size.
	rows float64
}

func (s scan) table() string {
	return fmt.Sprintf("%s.%s (about %.0f rows)", s.Schema, s.Table, s.rows)
}

func (s scan) purpose() string {
	if s.Filter == "" {
		return ""
	}
	return " to find " + s.Filter
}

// sequential returns the sequential scans of a plan.
func (s scan) sequential() []scan {
	var found []scan
	if s.Type == "Seq Scan" {
		found = append(found, s)
	}
	for _, child := range s.Plans {
		found = append(found, child.sequential()...)
	}
	return found
}

// subSelect is how EXPLAIN writes a sub-select's value: $0, and from PostgreSQL
// 17 on (InitPlan 1).col1.
var subSelect = regexp.MustCompile(`\$\d+|\(InitPlan \d+\)\.col1`)

// withParameters writes parameters where a filter has what stands for them.
func withParameters(filter string, parameters map[string]string) string {
	return subSelect.ReplaceAllStringFunc(filter, func(value string) string {
		return cmp.Or(parameters[value], "(sub-select)")
	})
}

// parameters says which sub-selects of a plan stand for which parameters.
func (s scan) parameters(ids string) map[string]string {
	found := map[string]string{}
	for _, child := range s.Plans {
		maps.Copy(found, child.parameters(ids))
	}
	if !strings.HasPrefix(s.SubPlan, "InitPlan ") || len(s.Output) != 1 {
		return found
	}
	name, older, _ := strings.Cut(strings.TrimSuffix(s.SubPlan, ")"), " (returns ")
	value := cmp.Or(older, "("+name+").col1")
	switch s.Output[0] {
	case "NULL::" + ids:
		found[value] = "$1"
	case "NULL::jsonb[]":
		found[value] = "$2"
	}
	return found
}
