package params

import (
	"fmt"
	"unicode/utf8"
)

// A document is a JSON text that was checked, with the members of its object.
type document struct {
	data    []byte // without the space around it; empty for an empty body
	members []member
	// similar is a name that differs from another of its object in letter case
	// only, nil if there is none.
	similar []byte
}

// A member is a name and its value, as written.
type member struct{ name, value []byte }

func (d document) find(name string) (found, error) {
	if len(d.data) == 0 {
		return found{}, nil
	}
	if d.data[0] != '{' {
		return found{}, malformed(SourceJSON, "", "must be a JSON object"+butIs(d.data))
	}
	for _, m := range d.members {
		if string(m.name) == name {
			return found{from: SourceJSON, count: 1, raw: m.value}, nil
		}
	}
	return found{}, nil
}

// A scanner checks what encoding/json lets pass and one shouldn't: duplicate
// names, invalid UTF-8, unpaired surrogates, NULs, depth, and the number of
// elements. It reads the text once, and allocates only for members, escaped names
// and large objects.
type scanner struct {
	data     []byte
	pos      int
	depth    int
	elements int // and members, so far
	options  *Options
	path     []step // to the value at pos, within the values that begin before
	keep     bool   // the members of the outermost object
	members  []member
	similar  []byte
}

// scan checks a JSON text. One that is empty, but for space, is no error.
func scan(data []byte, o *Options) (document, error) {
	var few [8]step
	s := &scanner{data: data, options: o, keep: true, path: few[:0]}
	start, err := s.begin()
	if err != nil || start == len(data) {
		return document{}, err
	}
	if err := s.value(); err != nil {
		return document{}, err
	}
	end := s.pos
	if err := s.finish(); err != nil {
		return document{}, err
	}
	return document{data: data[start:end], members: s.members, similar: s.similar}, nil
}

// begin goes to where the value begins: the end, if there is none.
func (s *scanner) begin() (start int, err error) {
	if !utf8.Valid(s.data) {
		return 0, malformed(SourceJSON, "", "is not valid UTF-8")
	}
	s.next()
	return s.pos, nil
}

// finish checks that there is nothing after the value.
func (s *scanner) finish() error {
	if s.next(); s.pos < len(s.data) {
		return s.fault("has more after the JSON value,")
	}
	return nil
}

func (s *scanner) fault(what string) error {
	return malformed(SourceJSON, "", fmt.Sprintf("%s at byte %d", what, s.pos))
}

// unexpected is the fault at the current byte, or at the end.
func (s *scanner) unexpected() error {
	if s.pos >= len(s.data) {
		return s.fault("is JSON that ends too early,")
	}
	c, _ := utf8.DecodeRune(s.data[s.pos:])
	return s.fault(fmt.Sprintf("is not valid JSON, unexpected %q", c))
}

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// next skips space and returns the byte after it, 0 at the end.
func (s *scanner) next() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) value() error {
	switch c := s.peek(); c {
	case '{':
		return s.nested(s.object)
	case '[':
		return s.nested(s.array)
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) nested(scan func() error) error {
	if err := s.enter(); err != nil {
		return err
	}
	err := scan()
	s.depth--
	return err
}

// enter goes into an array or an object. Whoever leaves it takes 1 from the depth.
func (s *scanner) enter() error {
	if s.depth == s.options.MaxDepth {
		return s.tooLarge(fmt.Sprintf("is nested more than %d deep", s.depth))
	}
	s.depth++
	s.pos++
	return nil
}

// element counts an element of an array or a member of an object.
func (s *scanner) element() error {
	if s.elements == s.options.MaxElements {
		return s.tooLarge(fmt.Sprintf("has more than %d elements", s.elements))
	}
	s.elements++
	return nil
}

func (s *scanner) tooLarge(detail string) *Error {
	return &Error{Source: SourceJSON, Reason: ErrTooLarge, Detail: detail}
}

func (s *scanner) object() error {
	if s.next() == '}' {
		s.pos++
		return nil
	}
	var names nameSet
	for {
		if err := s.member(&names); err != nil {
			return err
		}
		if more, err := s.separator('}'); !more {
			return err
		}
	}
}

func (s *scanner) member(names *nameSet) error {
	name, err := s.memberName()
	if err == nil {
		err = s.newName(names, name)
	}
	if err != nil {
		return err
	}
	start := s.pos
	s.path = append(s.path, step{name: name})
	if err := s.value(); err != nil {
		return err
	}
	s.path = s.path[:len(s.path)-1]
	if s.depth == 1 && s.keep {
		if s.members == nil {
			s.members = make([]member, 0, len(names.few))
		}
		s.members = append(s.members, member{name, s.data[start:s.pos]})
	}
	return nil
}

// memberName reads a member's name and goes to its value.
func (s *scanner) memberName() ([]byte, error) {
	if s.next() != '"' {
		return nil, s.unexpected()
	}
	raw, err := s.text()
	if err != nil {
		return nil, err
	}
	if err := s.element(); err != nil {
		return nil, err
	}
	if s.next() != ':' {
		return nil, s.unexpected()
	}
	s.pos++
	s.next()
	return unquote(raw), nil
}

// newName checks that name is new to its object.
func (s *scanner) newName(names *nameSet, name []byte) error {
	if names.count == s.options.MaxParams {
		return s.tooManyMembers()
	}
	same, similar := names.add(name)
	if same {
		return s.twice(name, "is given twice")
	}
	if similar && s.similar == nil {
		s.similar = name
	}
	return nil
}

func (s *scanner) tooManyMembers() error {
	return s.tooLarge(fmt.Sprintf("has an object with more than %d members", s.options.MaxParams))
}

// twice is the fault of a name that its object has already.
func (s *scanner) twice(name []byte, detail string) error {
	return s.at(&Error{Source: SourceJSON, Reason: ErrMalformed, Detail: detail}, step{name: name})
}

func (s *scanner) array() error {
	if s.next() == ']' {
		s.pos++
		return nil
	}
	s.path = append(s.path, step{})
	for i := 0; ; i++ {
		s.path[len(s.path)-1].index = i
		if err := s.element(); err != nil {
			return err
		}
		s.next()
		if err := s.value(); err != nil {
			return err
		}
		if more, err := s.separator(']'); !more {
			s.path = s.path[:len(s.path)-1]
			return err
		}
	}
}

// separator reads a comma, after which there is more, or the closing byte.
func (s *scanner) separator(closing byte) (more bool, err error) {
	switch c := s.next(); c {
	case ',':
		s.pos++
		return true, nil
	case closing:
		s.pos++
		return false, nil
	}
	return false, s.unexpected()
}
