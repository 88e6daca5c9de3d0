package params

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// kinds is a set of kinds of content.
type kinds uint8

const (
	formKind kinds = 1 << iota
	jsonKind
	otherKind // something that only Body returns
)

// accepted names the media types of the kinds.
func (k kinds) accepted() []string {
	var types []string
	if k&formKind != 0 {
		types = append(types, formType)
	}
	if k&jsonKind != 0 {
		types = append(types, jsonType)
	}
	return types
}

// content is what is known of a request's body before it is read.
type content struct {
	none  bool // there is no body
	kind  kinds
	coded string // why no kind can be read: a content coding
	fault string // why it is otherKind, as a predicate
}

func contentOf(h http.Header) content {
	if codings := h["Content-Encoding"]; len(codings) > 0 {
		if c := strings.Join(codings, ", "); c != "" && !strings.EqualFold(c, "identity") {
			return content{kind: otherKind, coded: "has the content coding " + strconv.Quote(clip(c)) + "; send it without"}
		}
	}
	switch types := h["Content-Type"]; len(types) {
	case 0:
		return content{kind: otherKind, fault: "has no Content-Type"}
	case 1:
		return contentOfType(types[0])
	default:
		return content{kind: otherKind, fault: "has more than one Content-Type"}
	}
}

func contentOfType(t string) content {
	switch t { // what nearly every client sends needs no parsing
	case formType:
		return content{kind: formKind}
	case jsonType:
		return content{kind: jsonKind}
	}
	media, attributes, err := mime.ParseMediaType(t)
	if err != nil {
		return content{kind: otherKind, fault: "has the malformed Content-Type " + strconv.Quote(clip(t))}
	}
	kind := kindOf(media)
	if kind == otherKind {
		return content{kind: kind, fault: "has the type " + strconv.Quote(clip(media))}
	}
	if charset, ok := attributes["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return content{kind: otherKind, fault: "has the charset " + strconv.Quote(clip(charset)) + "; send UTF-8"}
	}
	return content{kind: kind}
}

// kindOf classifies a media type in lower case.
func kindOf(media string) kinds {
	switch {
	case media == formType:
		return formKind
	case media == jsonType, strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"):
		return jsonKind
	}
	return otherKind
}

// check returns a 415 unless the content is of one of the wanted kinds.
func (c content) check(want kinds) error {
	if c.coded == "" && c.kind&want != 0 {
		return nil
	}
	e := &Error{Source: SourceBody, Reason: ErrUnsupported, Detail: c.coded}
	if c.coded != "" {
		return e
	}
	e.accepted = want.accepted()
	e.Detail = c.fault
	if e.Detail == "" {
		e.Detail = "has the type " + strconv.Quote(c.kind.accepted()[0])
	}
	e.Detail += "; accepted is " + strings.Join(e.accepted, " or ")
	return e
}
