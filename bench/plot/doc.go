// Package plot draws results as SVG: one picture for each suite and metric, a row for
// each case, a mark at each contender's median and a line from its smallest round to its
// largest.
package plot
