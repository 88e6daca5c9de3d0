package proxy

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
)

// newPseudonym returns what the proxy calls itself in Via fields.
func newPseudonym() string { return "ratelimit-proxy-" + rand.Text()[:12] }

// sawBefore tells whether a request has been through this proxy.
func (p *Proxy) sawBefore(r *http.Request) bool {
	for _, line := range r.Header["Via"] {
		if strings.Contains(line, p.pseudonym) {
			return true
		}
	}
	return false
}

// sign adds the proxy to the Via field.
func (p *Proxy) sign(in, out *http.Request) {
	if len(in.Header["Via"]) == 0 && in.ProtoMajor == 1 && in.ProtoMinor == 1 { // most requests
		out.Header["Via"] = p.via
		return
	}
	version := "1." + strconv.Itoa(in.ProtoMinor)
	if in.ProtoMajor != 1 {
		version = strconv.Itoa(in.ProtoMajor) + "." + strconv.Itoa(in.ProtoMinor)
	}
	out.Header["Via"] = []string{strings.Join(append(in.Header["Via"][:len(in.Header["Via"]):len(in.Header["Via"])], version+" "+p.pseudonym), ", ")}
}
