package experiment

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pommelgym/pommel/internal/learn/report"
)

// colours are those of the arms.
var colours = []color.Color{report.Grey, report.Blue, report.Orange}

// bar is how wide a bar is.
const bar = 18 * vg.Millimeter / 3

// points are bars with their intervals.
type points struct {
	plotter.XYs
	plotter.YErrors
}

// Plot draws the success of the arms with its intervals, as PNG.
func (r *Result) Plot() ([]byte, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Success after %d steps of training, %d seeds", r.Design.Steps, len(r.Design.Seeds))
	p.Y.Label.Text = "success"
	p.Y.Min, p.Y.Max = 0, 1.2 // room for the legend
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0 %"}, {Value: .2, Label: "20 %"}, {Value: .4, Label: "40 %"}, {Value: .6, Label: "60 %"}, {Value: .8, Label: "80 %"}, {Value: 1, Label: "100 %"}}
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	p.Add(grid)
	for i, arm := range r.Design.Arms {
		offset := (vg.Length(i) - vg.Length(len(r.Design.Arms)-1)/2) * bar
		if err := r.draw(p, arm.Name, colours[i%len(colours)], offset); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, s := range r.Design.Suites {
		for _, profile := range r.Design.Profiles {
			names = append(names, s.Name+" tasks,\n"+profile)
		}
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	p.Legend.Top, p.Legend.Padding = true, vg.Millimeter
	return report.PNG(p, 20*vg.Centimeter, 9*vg.Centimeter)
}

func (r *Result) draw(p *plot.Plot, arm string, c color.Color, offset vg.Length) error {
	var values plotter.Values
	var at points
	for _, cell := range r.Cells {
		if cell.Arm != arm {
			continue
		}
		at.XYs = append(at.XYs, plotter.XY{X: float64(len(values)), Y: cell.Rate})
		at.YErrors = append(at.YErrors, struct{ Low, High float64 }{cell.Rate - cell.Interval.Low, cell.Interval.High - cell.Rate})
		values = append(values, cell.Rate)
	}
	bars, err := plotter.NewBarChart(values, bar)
	if err != nil {
		return fmt.Errorf("draw %s: %w", arm, err)
	}
	bars.Color, bars.Offset = c, offset
	bars.LineStyle.Width = 0
	p.Add(bars)
	p.Legend.Add("trained under "+arm, bars)
	whiskers, err := plotter.NewYErrorBars(at)
	if err != nil {
		return fmt.Errorf("draw %s: %w", arm, err)
	}
	p.Add(shifted{whiskers, offset})
	return nil
}

// shifted draws intervals where their bars stand.
type shifted struct {
	*plotter.YErrorBars
	by vg.Length
}

// Plot draws them.
func (s shifted) Plot(c draw.Canvas, p *plot.Plot) {
	c.Push()
	defer c.Pop()
	c.Translate(vg.Point{X: s.by})
	s.YErrorBars.Plot(c, p)
}
