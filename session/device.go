package session

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/storage"
)

// maxUserAgent is the number of bytes of a User-Agent that are recorded.
const maxUserAgent = 256

// device returns what stores record about the client of a request: the address, a space, and the User-Agent.
func (m *Manager) device(c *reqctx.Context) string {
	r := c.Request()
	if r == nil {
		return ""
	}
	addr := ""
	if a := m.opts.ClientAddr(c, r).Unmap().WithZone(""); a.IsValid() {
		addr = a.String()
	}
	agent := r.UserAgent()
	return addr + " " + strings.ToValidUTF8(agent[:min(len(agent), maxUserAgent)], "")
}

// parseDevice returns the parts of a result of device.
func parseDevice(device string) (addr netip.Addr, agent string) {
	text, agent, _ := strings.Cut(device, " ")
	addr, _ = netip.ParseAddr(text)
	return addr, agent
}

// connAddr returns the address of the connection's peer, or the zero Addr if it has none.
func connAddr(_ context.Context, r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr()
}

// limits returns the limits for store calls of this request.
func (s *state) limits() storage.Limits {
	lim := s.m.limits
	if s.m.opts.Devices {
		lim.Device = s.m.device(s.c)
	}
	return lim
}
