package params

import (
	"net/url"
	"strconv"
	"strings"
)

// A step leads from a JSON value to one in it: to a member, or, without a name, to
// an element.
type step struct {
	name  []byte
	index int
}

func (s step) text() string {
	if s.name == nil {
		return strconv.Itoa(s.index)
	}
	return string(s.name)
}

// at says in e where it happened: at the scanner's path and then the further steps.
func (s *scanner) at(e *Error, further ...step) *Error {
	steps := append(s.path[:len(s.path):len(s.path)], further...)
	if len(steps) > 0 {
		e.Name, e.pointer = dotted(steps), pointerTo(steps...)
	}
	return e
}

// dotted is how a place is called in words.
func dotted(steps []step) string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = clip(s.text())
	}
	return strings.Join(names, ".")
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointerTo is the JSON Pointer to a place, as a URI fragment.
func pointerTo(steps ...step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteByte('/')
		_, _ = pointerEscapes.WriteString(&b, clip(s.text()))
	}
	u := url.URL{Fragment: b.String()}
	return "#" + u.EscapedFragment()
}
