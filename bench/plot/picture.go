package plot

import (
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

// The colours of the contenders, ours first, distinct for colour-blind readers, too.
var palette = []color.Color{
	color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	color.RGBA{0x00, 0x72, 0xb2, 0xff},
	color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	color.RGBA{0x55, 0x55, 0x55, 0xff},
}

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{},
}

// mark returns the colour and the shape of contender i. The first 25 are distinct.
func mark(i int) (color.Color, draw.GlyphDrawer) {
	return palette[i%len(palette)], shapes[(i+i/len(palette))%len(shapes)]
}

// rowHeight is what a contender takes of a case's row, in points.
const rowHeight = 16

// picture is one metric of a suite.
type picture struct {
	suite, metric, unit string
	cases, contenders   []string
	results             []harness.Result // those that were measured
	log                 bool             // the axis is logarithmic
}

// newPicture returns nil if the metric was never measured.
func newPicture(all record.Record, metric string) *picture {
	list := slices.DeleteFunc(slices.Clone(all.Results), func(r harness.Result) bool {
		return r.Metric != metric || r.Note != "" && r.Max == 0
	})
	if len(list) == 0 {
		return nil
	}
	return &picture{
		suite: all.Suite, metric: metric, unit: list[0].Unit,
		cases:      distinct(list, func(r harness.Result) string { return r.Case }),
		contenders: distinct(list, func(r harness.Result) string { return r.Contender }),
		results:    list,
		log:        !slices.ContainsFunc(list, func(r harness.Result) bool { return r.Min <= 0 }),
	}
}

// newPlot returns an empty plot in the style of all of them.
func newPlot(title string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = title
	p.Legend.Top = true
	p.Legend.Left = false
	p.Legend.Padding = vg.Points(3)
	return p
}

func (pic *picture) save(dir string) error {
	p := newPlot(pic.suite + ": " + pic.metric)
	p.X.Label.Text = pic.unit
	if slices.ContainsFunc(pic.results, func(r harness.Result) bool { return r.Note != "" }) {
		p.X.Label.Text += " (×: wrong or failed)"
	}
	if pic.log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	} else {
		p.X.Min = 0
	}
	pic.setCaseAxis(p)
	for i, contender := range pic.contenders {
		if err := pic.drawMarks(p, i, contender); err != nil {
			return err
		}
	}
	pic.widenAxis(p)
	height := float64(60 + rowHeight*(len(pic.cases)+1)*len(pic.contenders))
	name := strings.ReplaceAll(pic.suite+"-"+pic.metric, " ", "-") + ".svg"
	return p.Save(vg.Points(560), vg.Points(height), filepath.Join(dir, name))
}

// widenAxis leaves room at the ends of the axis for whole marks.
func (pic *picture) widenAxis(p *plot.Plot) {
	p.X.Max *= 1.1
	if pic.log {
		p.X.Min /= 1.1
	}
}

// setCaseAxis gives each case a row of the vertical axis, the first at the top, and room
// above them for the legend.
func (pic *picture) setCaseAxis(p *plot.Plot) {
	names := slices.Clone(pic.cases)
	slices.Reverse(names)
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))+0.4
	p.Y.Label.Text = "case"
	p.Add(plotter.NewGrid())
}

// drawMarks draws one contender.
func (pic *picture) drawMarks(p *plot.Plot, i int, contender string) error {
	var points intervals
	var invalid []bool // of each point
	for _, r := range pic.results {
		if r.Contender != contender {
			continue
		}
		row := float64(len(pic.cases) - 1 - slices.Index(pic.cases, r.Case))
		offset := 0.7 * (0.5 - (float64(i)+0.5)/float64(len(pic.contenders)))
		points.XYs = append(points.XYs, plotter.XY{X: r.Median, Y: row + offset})
		invalid = append(invalid, r.Note != "")
		points.XErrors = append(points.XErrors, struct{ Low, High float64 }{r.Min - r.Median, r.Max - r.Median})
	}
	spread, err := plotter.NewXErrorBars(points)
	if err != nil {
		return err
	}
	scatter, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	scatter.Color, scatter.Shape = mark(i)
	spread.Color, scatter.Radius = scatter.Color, vg.Points(3.5)
	scatter.GlyphStyleFunc = func(i int) draw.GlyphStyle {
		style := scatter.GlyphStyle
		if invalid[i] {
			style.Shape = draw.CrossGlyph{}
		}
		return style
	}
	p.Add(spread, scatter)
	p.Legend.Add(contender, scatter)
	return nil
}

// intervals are medians with the spread around them.
type intervals struct {
	plotter.XYs
	plotter.XErrors
}
