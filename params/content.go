package params

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const (
	formType      = "application/x-www-form-urlencoded"
	jsonType      = "application/json"
	multipartType = "multipart/form-data"
)

// kinds is a set of kinds of sources.
type kinds uint8

const (
	formKind kinds = 1 << iota
	multipartKind
	jsonKind
	otherKind // a body that only Body and Stream return
	pathKind
	queryKind

	contentKind = formKind | multipartKind | jsonKind
	anyKind     = contentKind | otherKind // of a body
	allKinds    = pathKind | contentKind | queryKind
)

// mediaTypes are the kinds of content that have one.
var mediaTypes = []struct {
	kind kinds
	name string
}{{formKind, formType}, {multipartKind, multipartType}, {jsonKind, jsonType}}

// mediaTypes returns the media types of the kinds.
func (k kinds) mediaTypes() (types []string) {
	for _, t := range mediaTypes {
		if k&t.kind != 0 {
			types = append(types, t.name)
		}
	}
	return types
}

// content describes a request's body before it is read.
type content struct {
	none     bool // there is no body
	kind     kinds
	boundary string // between the parts of a multipart form
	codings  string // the content codings in lower case; "" is none
	fault    string // a predicate: why it is otherKind
}

func contentOf(h http.Header) (c content) {
	switch types := h["Content-Type"]; len(types) {
	case 0:
		c = content{kind: otherKind, fault: "has no Content-Type"}
	case 1:
		c = contentOfType(types[0])
	default:
		c = content{kind: otherKind, fault: "has more than one Content-Type"}
	}
	if codings := h["Content-Encoding"]; len(codings) > 0 {
		if all := strings.ToLower(strings.Join(codings, ", ")); all != "identity" {
			c.codings = all
		}
	}
	return c
}

func contentOfType(t string) content {
	switch t { // the usual ones need no parsing
	case formType:
		return content{kind: formKind}
	case jsonType:
		return content{kind: jsonKind}
	}
	media, attributes, err := mime.ParseMediaType(t)
	if err != nil {
		return content{kind: otherKind, fault: "has the malformed Content-Type " + strconv.Quote(shorten(t))}
	}
	kind := kindOf(media)
	if kind == otherKind {
		return content{kind: kind, fault: "has the type " + strconv.Quote(shorten(media))}
	}
	if fault := charsetProblem(attributes); fault != "" {
		return content{kind: otherKind, fault: fault}
	}
	c := content{kind: kind}
	if kind == multipartKind {
		// RFC 2046 allows 70 characters. A longer one makes the search for it slow.
		if c.boundary = attributes["boundary"]; c.boundary == "" || len(c.boundary) > 70 {
			return content{kind: otherKind, fault: "has a Content-Type without a valid boundary"}
		}
	}
	return c
}

// charsetProblem returns a predicate if the text is not in UTF-8.
func charsetProblem(attributes map[string]string) string {
	if charset, ok := attributes["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return "has the charset " + strconv.Quote(shorten(charset)) + "; send UTF-8"
	}
	return ""
}

// kindOf classifies a media type in lower case.
func kindOf(media string) kinds {
	switch {
	case media == formType:
		return formKind
	case media == multipartType:
		return multipartKind
	case media == jsonType, strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"):
		return jsonKind
	}
	return otherKind
}

// checkKind returns a 415 unless the content is of one of the wanted kinds, in a coding
// that o can inflate.
func (c content) checkKind(want kinds, o *Options) error {
	if c.codings != "" && o.inflaterOf(c.codings) == nil {
		detail := "has the content coding " + strconv.Quote(shorten(c.codings)) + ", which is not read here"
		return &Error{Source: SourceBody, Reason: ErrUnsupported, Detail: detail}
	}
	if c.kind&want != 0 {
		return nil
	}
	e := &Error{Source: SourceBody, Reason: ErrUnsupported, accepted: want.mediaTypes(), Detail: c.fault}
	if e.Detail == "" {
		e.Detail = "has the type " + strconv.Quote(c.kind.mediaTypes()[0])
	}
	e.Detail += "; accepted is " + strings.Join(e.accepted, " or ")
	return e
}
