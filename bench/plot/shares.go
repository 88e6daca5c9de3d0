package plot

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// saveShares draws the throughput of the suite "server" over the share of requests that
// need their session: the cases without a delay in which a contender was right, a line for
// each contender. It draws nothing if fewer than two such cases were measured.
func saveShares(all []harness.Result, dir string) error {
	lines := map[string]plotter.XYs{}
	var contenders []string
	for _, r := range all {
		var percent float64
		if _, err := fmt.Sscanf(r.Case, "%g%%/0ms", &percent); err != nil || r.Metric != "throughput" || r.Note != "" {
			continue
		}
		if lines[r.Contender] == nil {
			contenders = append(contenders, r.Contender)
		}
		lines[r.Contender] = append(lines[r.Contender], plotter.XY{X: percent, Y: r.Median / 1000})
	}
	if len(contenders) == 0 || len(lines[contenders[0]]) < 2 {
		return nil
	}
	p := newPlot("throughput by the share of requests that need session, parameters and limit")
	p.X.Label.Text, p.Y.Label.Text = "% of requests", "thousand requests per second"
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	for i, name := range contenders {
		slices.SortFunc(lines[name], func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		line, points, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return err
		}
		points.Color, points.Shape = mark(i)
		points.Radius = vg.Points(3.5)
		line.Color, line.Width = points.Color, vg.Points(1.5)
		p.Add(line, points)
		p.Legend.Add(name, line, points)
	}
	p.X.Max *= 1.03 // the whole last mark
	p.Y.Max *= 1.4  // room for the legend
	return p.Save(vg.Points(560), vg.Points(300), filepath.Join(dir, "server-shares.svg"))
}
