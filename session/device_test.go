package session_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

// visit runs a request of a client with this address and User-Agent. It logs the client in unless there is a cookie, and
// returns the Cookie header.
func (s *site) visit(t *testing.T, cookie, addr, agent string) string {
	t.Helper()
	c := s.begin(t, cookie)
	c.Request().RemoteAddr = addr
	c.Request().Header["User-Agent"] = []string{agent}
	if cookie != "" {
		require.Equal(t, "ada", must(session.RequireUser(c)))
	} else {
		require.NoError(t, from(t, c).Bind("ada"))
	}
	h, err := s.end(t, c)
	require.NoError(t, err)
	if cookie == "" {
		cookie = cookieOf(t, h)
	}
	return cookie
}

// only returns the only session of ada.
func (s *site) only(t *testing.T) session.Info {
	t.Helper()
	infos := must(s.m.List(t.Context(), "ada"))
	require.Len(t, infos, 1)
	return infos[0]
}

func TestDeviceIsRecordedWithTheUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{Devices: true})
		cookie := s.visit(t, "", "203.0.113.7:1234", "Phone/1")
		began := time.Now()
		pass(time.Minute)
		s.visit(t, cookie, "[2001:db8::1]:80", "Phone/2") // too early
		require.Equal(t, [3]int64{1, 1, 0}, s.store.calls())
		i := s.only(t)
		require.Equal(t, netip.MustParseAddr("203.0.113.7"), i.Addr)
		require.Equal(t, "Phone/1", i.UserAgent)
		require.Equal(t, began.UnixNano(), i.Used.UnixNano())
		text := string(must(json.Marshal(i)))
		require.Contains(t, text, `"addr":"203.0.113.7","userAgent":"Phone/1"`)

		pass(2 * time.Minute)
		s.visit(t, cookie, "[2001:db8::1]:80", "Phone/2")
		require.Equal(t, [3]int64{2, 1, 0}, s.store.calls(), "the touch is a part of the load")
		i = s.only(t)
		require.Equal(t, netip.MustParseAddr("2001:db8::1"), i.Addr)
		require.Equal(t, "Phone/2", i.UserAgent)
		require.Equal(t, time.Now().UnixNano(), i.Used.UnixNano())

		s.do(t, cookie, func(ctx context.Context, _ session.Session) { require.NoError(t, userField.Set(ctx, "x")) })
		require.Equal(t, netip.MustParseAddr("192.0.2.1"), s.only(t).Addr, "a save is a use")
		require.Empty(t, s.only(t).UserAgent)
	})
}

func TestNoDeviceByDefault(t *testing.T) {
	s := newSite(t, session.Options{ClientAddr: func(context.Context, *http.Request) netip.Addr { panic("called") }})
	s.visit(t, "", "203.0.113.7:1234", "Phone/1")
	i := s.only(t)
	require.False(t, i.Addr.IsValid())
	require.Empty(t, i.UserAgent)
	text := string(must(json.Marshal(i)))
	require.NotContains(t, text, "addr")
	require.NotContains(t, text, "userAgent")
}

func TestOddDevices(t *testing.T) {
	long := strings.Repeat("x", 255)
	for name, tt := range map[string]struct{ addr, agent, wantAddr, wantAgent string }{
		"no address":     {"@", "Phone/1", "", "Phone/1"},
		"nothing":        {"", "", "", ""},
		"mapped address": {"[::ffff:192.0.2.9]:1", "a b  c ", "192.0.2.9", "a b  c "},
		"zone":           {"[fe80::1%eth 0]:1", "Phone/1", "fe80::1", "Phone/1"},
		"long":           {"192.0.2.9:1", long + "yz", "192.0.2.9", long + "y"},
		"half a rune":    {"192.0.2.9:1", long + "é", "192.0.2.9", long},
		"invalid UTF-8":  {"192.0.2.9:1", "a\xff\x00b", "192.0.2.9", "a\x00b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{Devices: true})
			s.visit(t, "", tt.addr, tt.agent)
			i := s.only(t)
			want, _ := netip.ParseAddr(tt.wantAddr)
			require.Equal(t, want, i.Addr)
			require.Equal(t, tt.wantAgent, i.UserAgent)
		})
	}
}

// A function of the application that panics fails the request like a panic of the handler, and nothing is saved.
func TestClientAddrThatPanics(t *testing.T) {
	s := newSite(t, session.Options{Devices: true, ClientAddr: func(context.Context, *http.Request) netip.Addr { panic("oops") }})
	c := s.begin(t, "")
	require.Panics(t, func() { _ = from(t, c).Bind("ada") })
	_, err := s.end(t, c)
	require.NoError(t, err)
	require.Equal(t, [3]int64{}, s.store.calls())
}
