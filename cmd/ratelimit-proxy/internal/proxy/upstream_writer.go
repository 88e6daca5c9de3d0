package proxy

import "net/http"

// upstreamWriter is the writer for [httputil.ReverseProxy].
type upstreamWriter struct {
	http.ResponseWriter
	informs bool // the client understands informational responses (1xx)
}

// WriteHeader drops informational responses that the client doesn't understand, and 101 over HTTP/2, which
// doesn't have it. Over HTTP/1, ReverseProxy hijacks the connection and doesn't call WriteHeader.
func (w *upstreamWriter) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols || status < 200 && !w.informs {
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *upstreamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
