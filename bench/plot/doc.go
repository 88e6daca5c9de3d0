// Package plot draws results as SVG. There is a picture for each suite and metric, and a row for each case. In a
// row, a mark shows each contender's median, and a line reaches from its smallest round to its largest. The
// mark is a cross if the contender was wrong or has failed.
package plot
