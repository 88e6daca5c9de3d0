package params

import (
	"cmp"
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
	anyKind     = contentKind | otherKind // any kind of body
	allKinds    = pathKind | contentKind | queryKind
)

// mediaTypes returns the media types of the kinds.
func (k kinds) mediaTypes() (types []string) {
	for i, name := range []string{formType, multipartType, jsonType} {
		if k&(formKind<<i) != 0 {
			types = append(types, name)
		}
	}
	return types
}

// content describes a request's body before it is read.
type content struct {
	none     bool // there is no body
	kind     kinds
	media    string // the media type, if it was parsed
	boundary string // between the parts of a multipart form
	codings  string // the content codings in lower case, or ""
	fault    string // a predicate that says why the kind is otherKind
}

func contentOf(h http.Header) content {
	c := content{kind: otherKind}
	switch types := h["Content-Type"]; len(types) {
	case 0:
		c.fault = "has no Content-Type"
	case 1:
		c = contentOfType(types[0])
	default:
		c.fault = "has more than one Content-Type"
	}
	if codings := strings.ToLower(strings.Join(h["Content-Encoding"], ", ")); codings != "identity" {
		c.codings = codings
	}
	return c
}

func contentOfType(t string) content {
	if t == formType || t == jsonType { // the usual types need no parsing
		return content{kind: kindOf(t)}
	}
	c := content{kind: otherKind}
	media, attributes, err := mime.ParseMediaType(t)
	kind, boundary := kindOf(media), attributes["boundary"]
	switch charset := charsetProblem(attributes); {
	case err != nil:
		c.fault = "has the malformed Content-Type " + strconv.Quote(shorten(t))
	case kind == otherKind:
		c.fault = "has the type " + strconv.Quote(shorten(media))
	case charset != "":
		c.fault = charset
	case kind == multipartKind && (boundary == "" || len(boundary) > 70): // the limit of RFC 2046
		c.fault = "has a Content-Type without a valid boundary"
	default:
		c.kind, c.boundary, c.media = kind, boundary, media
	}
	return c
}

// charsetProblem returns a predicate that names the declared charset, or "" if the charset is UTF-8 or not declared.
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

// checkKind returns an [ErrUnsupported] unless the content has a wanted kind and a supported coding.
func (c content) checkKind(want kinds) error {
	if c.codings != "" && inflaters[c.codings] == nil {
		return newError(ErrUnsupported, SourceBody, "", "has the unsupported content coding "+strconv.Quote(shorten(c.codings)))
	}
	if c.kind&want != 0 {
		return nil
	}
	detail := c.fault
	if detail == "" {
		detail = "has the type " + strconv.Quote(shorten(cmp.Or(c.media, c.kind.mediaTypes()[0])))
	}
	types := want.mediaTypes()
	e := newError(ErrUnsupported, SourceBody, "", detail+"; accepted is "+strings.Join(types, " or "))
	e.accepted = types
	return e
}
