package params

import (
	"unicode/utf16"
	"unicode/utf8"
)

// plainByte tells the bytes that stand for themselves in a JSON string.
var plainByte = func() (plain [256]bool) {
	for c := range plain {
		plain[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return plain
}()

// text reads a string and returns it as written, with its quotes.
func (s *scanner) text() ([]byte, error) {
	start := s.pos
	s.pos++
	for {
		for s.pos < len(s.data) && plainByte[s.data[s.pos]] {
			s.pos++
		}
		switch s.peek() {
		case '"':
			s.pos++
			return s.data[start:s.pos], nil
		case '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			return nil, s.unexpected()
		}
	}
}

// escape reads an escape sequence. NUL is refused for the reason that textFault
// gives, an unpaired surrogate because no text contains one.
func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
	default:
		return s.unexpected()
	}
	unit, ok := hexUnit(s.data[s.pos:])
	switch {
	case !ok:
		return s.fault("is not valid JSON, malformed \\u escape")
	case unit == 0:
		return s.fault("has a NUL character")
	case utf16.IsSurrogate(unit):
		low := rune(-1)
		if rest := s.data[s.pos+5:]; len(rest) > 0 && rest[0] == '\\' {
			low, _ = hexUnit(rest[1:])
		}
		if utf16.DecodeRune(unit, low) == utf8.RuneError {
			return s.fault("has an unpaired surrogate")
		}
		s.pos += 6
	}
	s.pos += 5
	return nil
}

// hexUnit decodes "uXXXX" at the start of b.
func hexUnit(b []byte) (unit rune, ok bool) {
	if len(b) < 5 || b[0] != 'u' {
		return -1, false
	}
	for _, c := range b[1:5] {
		if !isHex(c) {
			return -1, false
		}
		unit = unit<<4 | rune(unhex(c))
	}
	return unit, true
}

// unquote decodes a string that text has read. One without escapes is returned
// as a part of raw.
func unquote(raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	i := 0
	for i < len(raw) && raw[i] != '\\' {
		i++
	}
	if i == len(raw) {
		return raw
	}
	out := append(make([]byte, 0, len(raw)), raw[:i]...)
	for i < len(raw) {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		i++
		if raw[i] != 'u' {
			out = append(out, unescaped(raw[i]))
			i++
			continue
		}
		unit, _ := hexUnit(raw[i:])
		i += 5
		if utf16.IsSurrogate(unit) {
			low, _ := hexUnit(raw[i+1:])
			unit = utf16.DecodeRune(unit, low)
			i += 6
		}
		out = utf8.AppendRune(out, unit)
	}
	return out
}

// unescaped is the character that a backslash and c stand for.
func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func (s *scanner) literal(word string) error {
	for i := range len(word) {
		if s.peek() != word[i] {
			return s.unexpected()
		}
		s.pos++
	}
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.pos++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return nil
}

// digits reads one digit or more.
func (s *scanner) digits() error {
	start := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	if s.pos == start {
		return s.unexpected()
	}
	return nil
}
