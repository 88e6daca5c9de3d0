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
// names, invalid UTF-8, unpaired surrogates, NULs, and depth. It reads the text
// once, and allocates only for members, escaped names and large objects.
type scanner struct {
	data    []byte
	pos     int
	depth   int
	options *Options
	members []member
	similar []byte
}

// scan checks a JSON text. One that is empty, but for space, is no error.
func scan(data []byte, o *Options) (document, error) {
	if !utf8.Valid(data) {
		return document{}, malformed(SourceJSON, "", "is not valid UTF-8")
	}
	s := &scanner{data: data, options: o}
	s.next()
	start := s.pos
	if start == len(data) {
		return document{}, nil
	}
	if err := s.value(); err != nil {
		return document{}, err
	}
	end := s.pos
	if s.next(); s.pos < len(data) {
		return document{}, s.fault("has more after the JSON value,")
	}
	return document{data: data[start:end], members: s.members, similar: s.similar}, nil
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
	if s.depth == s.options.MaxDepth {
		return &Error{
			Source: SourceJSON, Reason: ErrTooLarge,
			Detail: fmt.Sprintf("is nested more than %d deep", s.depth),
		}
	}
	s.depth++
	s.pos++
	err := scan()
	s.depth--
	return err
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
	if s.next() != '"' {
		return s.unexpected()
	}
	name, err := s.name(names)
	if err != nil {
		return err
	}
	if s.next() != ':' {
		return s.unexpected()
	}
	s.pos++
	s.next()
	start := s.pos
	if err := s.value(); err != nil {
		return err
	}
	if s.depth == 1 {
		if s.members == nil {
			s.members = make([]member, 0, len(names.few))
		}
		s.members = append(s.members, member{name, s.data[start:s.pos]})
	}
	return nil
}

// name reads a member's name, which must be new to its object.
func (s *scanner) name(names *nameSet) ([]byte, error) {
	raw, err := s.text()
	if err != nil {
		return nil, err
	}
	if names.count == s.options.MaxParams {
		return nil, &Error{
			Source: SourceJSON, Reason: ErrTooLarge,
			Detail: fmt.Sprintf("has an object with more than %d members", names.count),
		}
	}
	name := unquote(raw)
	same, similar := names.add(name)
	if same {
		return nil, malformed(SourceJSON, clip(string(name)), "is given twice")
	}
	if similar && s.similar == nil {
		s.similar = name
	}
	return name, nil
}

func (s *scanner) array() error {
	if s.next() == ']' {
		s.pos++
		return nil
	}
	for {
		s.next()
		if err := s.value(); err != nil {
			return err
		}
		if more, err := s.separator(']'); !more {
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
