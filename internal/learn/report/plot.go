// Package report draws what a training gave: plots and a page that needs nothing but a browser.
package report

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/pommelgym/pommel/internal/learn/train"
)

// Colours that can be told apart by readers who do not see red and green: Okabe & Ito, 2008.
var (
	Blue   = color.RGBA{0, 114, 178, 255}
	Orange = color.RGBA{230, 159, 0, 255}
	Green  = color.RGBA{0, 158, 115, 255}
	Grey   = color.RGBA{150, 150, 150, 255}
)

// Curve draws success and reward over the steps of a training, as PNG.
func Curve(o *train.Outcome) ([]byte, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("World %s, profile %s, seed %d", o.World, o.Profile, o.Seed)
	p.X.Label.Text = "steps"
	p.Y.Label.Text = "success, reward"
	p.Y.Min, p.Y.Max = 0, 1.3 // room for the legend
	p.Add(plotter.NewGrid())
	for _, l := range []struct {
		name  string
		of    func(train.Point) float64
		color color.Color
		width float64
	}{
		{"success of a batch", func(x train.Point) float64 { return x.Success }, Grey, 0.7},
		{"reward of a batch", func(x train.Point) float64 { return x.Reward }, Orange, 0.9},
		{"success, mean over tasks of late", func(x train.Point) float64 { return x.Smooth }, Blue, 2},
	} {
		xy := make(plotter.XYs, len(o.Curve))
		for i, pt := range o.Curve {
			xy[i].X, xy[i].Y = float64(pt.Steps), min(1, max(0, l.of(pt)))
		}
		if len(xy) == 0 {
			continue
		}
		line, err := plotter.NewLine(xy)
		if err != nil {
			return nil, fmt.Errorf("draw curve: %w", err)
		}
		line.Color, line.Width = l.color, vg.Points(l.width)
		p.Add(line)
		p.Legend.Add(l.name, line)
	}
	p.Legend.Top, p.Legend.Left = true, true
	return PNG(p, 16*vg.Centimeter, 9*vg.Centimeter)
}

// Tasks draws the success of each task before and after a training, as PNG.
func Tasks(o *train.Outcome) ([]byte, error) {
	p := plot.New()
	p.Title.Text = "Success by task, before and after"
	p.X.Min, p.X.Max = 0, 1
	before, after := make(plotter.Values, len(o.ByTask)), make(plotter.Values, len(o.ByTask))
	names := make([]string, len(o.ByTask))
	for i := range o.ByTask {
		t := o.ByTask[len(o.ByTask)-1-i] // the first task on top
		before[i], after[i], names[i] = t.Start, t.End, t.Task
		if o.End == nil {
			after[i] = t.Recent
		}
	}
	for _, b := range []struct {
		name   string
		v      plotter.Values
		color  color.Color
		offset vg.Length
	}{{"before", before, Grey, vg.Points(3)}, {"after", after, Green, vg.Points(-3)}} {
		bars, err := plotter.NewBarChart(b.v, vg.Points(6))
		if err != nil {
			return nil, fmt.Errorf("draw tasks: %w", err)
		}
		bars.Horizontal, bars.Color, bars.Offset = true, b.color, b.offset
		bars.LineStyle.Width = 0
		p.Add(bars)
		p.Legend.Add(b.name, bars)
	}
	p.Legend.Top = true
	p.NominalY(names...)
	return PNG(p, 16*vg.Centimeter, vg.Length(len(names))*0.65*vg.Centimeter+3*vg.Centimeter)
}

// PNG draws a plot.
func PNG(p *plot.Plot, w, h vg.Length) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(160))
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&b); err != nil {
		return nil, fmt.Errorf("encode plot: %w", err)
	}
	return b.Bytes(), nil
}
