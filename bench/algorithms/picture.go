package algorithms

import (
	"image/color"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that colour-blind readers can distinguish.
var (
	vermilion = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	blue      = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	green     = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	grey      = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
)

var dashes = []vg.Length{vg.Points(3), vg.Points(2)}

// columns is how many panels are side by side.
const columns = 3

// save draws over.svg and strict.svg.
func (r report) save(dir string) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var laxness, strictness []*plot.Plot
	for i := range r.over {
		p, err := r.over[i].drawPanel()
		if err != nil {
			return err
		}
		laxness = append(laxness, p)
		if p, err = r.strict[i].drawPanel(); err != nil {
			return err
		}
		strictness = append(strictness, p)
	}
	if err := savePanels(laxness, filepath.Join(dir, "over.svg")); err != nil {
		return err
	}
	return savePanels(strictness, filepath.Join(dir, "strict.svg"))
}

// drawPanel draws what gets through in windows of each length. Above the grey steps is more
// than the limit in some Per.
func (o over) drawPanel() (*plot.Plot, error) {
	p := newPanel(o.name, "window, s", "most let through")
	p.X.Max, p.Y.Max = 3*Per.Seconds(), 5*Limit
	p.X.Tick.Marker = axisTicks(60, 3)
	p.Y.Tick.Marker = axisTicks(Limit, 5)
	var found, bound, limit plotter.XYs
	for i, w := range windowLengths() {
		found = append(found, plotter.XY{X: w.Seconds(), Y: float64(o.found[i])})
		bound = append(bound, plotter.XY{X: w.Seconds(), Y: float64(o.theoreticalMax(w))})
		limit = append(limit, plotter.XY{X: w.Seconds(), Y: float64(exactMax(w))})
	}
	area, err := plotter.NewPolygon(append(limit, plotter.XY{X: p.X.Max}, plotter.XY{}))
	if err != nil {
		return nil, err
	}
	area.Color, area.LineStyle.Width = grey, 0
	p.Add(area)
	p.Legend.Add("at most 100 in any 60 s", area)
	return p, addLines(p, line{"found", found, vermilion, nil}, line{"bound", bound, blue, dashes})
}

// drawPanel draws what honest clients get by what they ask for.
func (s strict) drawPanel() (*plot.Plot, error) {
	p := newPanel(s.name, "asked for, in 60 s", "% of what SlidingLog gives")
	p.X.Min, p.X.Max, p.Y.Max = Limit/2, 2*Limit, 120
	p.Legend.Top = false
	p.X.Tick.Marker = axisTicks(Limit/2, 4)
	p.Y.Tick.Marker = axisTicks(20, 6)
	p.Add(plotter.NewGrid())
	var lines []line
	for _, l := range []line{{evenly, nil, vermilion, nil}, {chance, nil, blue, dashes}, {bunched, nil, green, dashes[:1]}} {
		for i, load := range clientLoads() {
			l.points = append(l.points, plotter.XY{X: load * Limit, Y: 100 * s.shares[l.name][i]})
		}
		lines = append(lines, l)
	}
	return p, addLines(p, lines...)
}

func newPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Y.Min = 0
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = vg.Points(9), vg.Points(9)
	p.Title.Padding = vg.Points(4)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Legend.Padding = vg.Points(2)
	return p
}

type line struct {
	name   string
	points plotter.XYs
	color  color.Color
	dashes []vg.Length
}

func addLines(p *plot.Plot, lines ...line) error {
	for _, l := range lines {
		drawn, err := plotter.NewLine(l.points)
		if err != nil {
			return err
		}
		drawn.Color, drawn.Dashes, drawn.Width = l.color, l.dashes, vg.Points(1.5)
		p.Add(drawn)
		p.Legend.Add(l.name, drawn)
	}
	return nil
}

// savePanels draws panels in rows. The legend of the first is that of all.
func savePanels(panels []*plot.Plot, path string) error {
	var rows [][]*plot.Plot
	for i, p := range panels {
		if i > 0 {
			p.Legend = plot.NewLegend()
		}
		if i%columns == 0 {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], p)
	}
	img := vgsvg.New(vg.Points(250*columns), vg.Points(float64(190*len(rows))))
	tiles := draw.Tiles{Rows: len(rows), Cols: columns, PadX: vg.Points(10), PadY: vg.Points(10), PadTop: vg.Points(4), PadRight: vg.Points(8)}
	for i, row := range plot.Align(rows, tiles, draw.New(img)) {
		for j, canvas := range row {
			rows[i][j].Draw(canvas)
		}
	}
	return writeSVG(img, path)
}

func writeSVG(img *vgsvg.Canvas, path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	_, err = img.WriteTo(f)
	return err
}

// axisTicks marks n multiples of each.
func axisTicks(each float64, n int) plot.ConstantTicks {
	var list plot.ConstantTicks
	for i := range n + 1 {
		v := float64(i) * each
		list = append(list, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
	}
	return list
}
