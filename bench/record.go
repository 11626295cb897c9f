package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// record collects the figures of a run.
type record struct {
	Machine machine  `json:"machine"`
	Series  []series `json:"series"`
	Curves  []curve  `json:"curves"`
}

// series is one figure of one contestant, with a value per repetition.
type series struct {
	Measurement string    `json:"measurement"`
	Contestant  string    `json:"contestant"`
	Figure      string    `json:"figure"` // with its unit
	Values      []float64 `json:"values"`
}

func newRecord() *record { return &record{Machine: thisMachine()} }

// add notes one value and prints it, so that a long run shows where it is.
func (r *record) add(measurement, contestant, figure string, value float64) {
	fmt.Printf("%s %s %s=%.4g\n", measurement, contestant, figure, value)
	if s := r.find(measurement, contestant, figure); s != nil {
		s.Values = append(s.Values, value)
		return
	}
	r.Series = append(r.Series, series{measurement, contestant, figure, []float64{value}})
}

func (r *record) find(measurement, contestant, figure string) *series {
	for i := range r.Series {
		if s := &r.Series[i]; s.Measurement == measurement && s.Contestant == contestant && s.Figure == figure {
			return s
		}
	}
	return nil
}

// median returns the median of a figure, and false where it was not measured.
func (r *record) median(measurement, contestant, figure string) (float64, bool) {
	s := r.find(measurement, contestant, figure)
	if s == nil {
		return 0, false
	}
	_, median, _ := s.spread()
	return median, true
}

// spread returns the least value, the median and the greatest. The median of an
// even number is the mean of the middle two.
func (s *series) spread() (least, median, most float64) {
	v := slices.Sorted(slices.Values(s.Values))
	n := len(v)
	return v[0], (v[(n-1)/2] + v[n/2]) / 2, v[n-1]
}

// print writes a measurement's figures as a table.
func (r *record) print(w io.Writer, measurement string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "\ncontestant\tfigure\tmedian\tleast\tmost\t")
	for _, s := range r.Series {
		if s.Measurement == measurement {
			least, median, most := s.spread()
			_, _ = fmt.Fprintf(t, "%s\t%s\t%.4g\t%.4g\t%.4g\t\n", s.Contestant, s.Figure, median, least, most)
		}
	}
	_ = t.Flush() // to a terminal
}

// save writes the record and its pictures into a directory.
func (r *record) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	for name, picture := range r.pictures() {
		if err := os.WriteFile(filepath.Join(dir, name), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}
