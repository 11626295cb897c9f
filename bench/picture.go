package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

const (
	pictureWidth  = 22 * vg.Centimeter
	pictureHeight = 12 * vg.Centimeter
)

// leastShown bounds the logarithmic axis, in milliseconds.
const leastShown = 0.5

// pictures draws what was measured, as SVG by file name.
func (r *record) pictures() map[string][]byte {
	pictures := map[string][]byte{}
	for name, draw := range map[string]func() (*plot.Plot, error){
		"lateness.svg": r.latenessPicture, "throughput.svg": r.throughputPicture,
	} {
		p, err := draw()
		if err != nil || p == nil {
			continue // nothing of it was measured
		}
		if svg, err := render(p); err == nil {
			pictures[name] = svg
		}
	}
	return pictures
}

func render(p *plot.Plot) ([]byte, error) {
	p.BackgroundColor = color.White
	w, err := p.WriterTo(pictureWidth, pictureHeight, "svg")
	if err != nil {
		return nil, err
	}
	var svg bytes.Buffer
	_, err = w.WriteTo(&svg)
	return svg.Bytes(), err
}

// latenessPicture shows for each contestant what share of the effects was off by
// no more than so many milliseconds. The early ones are off, too.
func (r *record) latenessPicture() (*plot.Plot, error) {
	if len(r.Curves) == 0 {
		return nil, nil
	}
	p := plot.New()
	p.Title.Text = fmt.Sprintf("How far from the due time, at %d tasks/s", judgedRate)
	p.X.Label.Text, p.Y.Label.Text = "milliseconds", "% of tasks"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, c := range r.Curves {
		off := c.off()
		points := make(plotter.XYs, len(off))
		for n, ms := range off {
			points[n] = plotter.XY{X: max(ms, leastShown), Y: 100 * float64(n) / float64(len(off)-1)}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i/7), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(c.Contestant, line)
	}
	return p, nil
}

// throughputPicture shows rates beside what bounds them.
func (r *record) throughputPicture() (*plot.Plot, error) {
	var labels []string
	var values plotter.Values
	for _, s := range r.Series {
		if s.Figure == "messages/s" || s.Figure == "tasks/s" && s.Measurement != "midnight" {
			_, median, _ := s.spread()
			labels, values = append(labels, s.Measurement+": "+s.Contestant), append(values, median)
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text = "Throughput", "per second"
	bars, err := plotter.NewBarChart(values, vg.Points(14))
	if err != nil {
		return nil, err
	}
	bars.Horizontal, bars.LineStyle.Width, bars.Color = true, 0, plotutil.Color(2)
	p.Add(bars)
	p.NominalY(labels...)
	p.X.Min = 0
	return p, nil
}

// off is the distance from the due time, ascending.
func (c curve) off() []float64 {
	off := make([]float64, len(c.Late))
	for i, ms := range c.Late {
		off[i] = math.Abs(ms)
	}
	slices.Sort(off)
	return off
}
