package proxy

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func TestListsMatchNAT64Addresses(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	key := config.Key{{Kind: "client", Name: "ip"}}
	for _, c := range []struct {
		entry, address string
		want           bool
	}{
		{"198.51.100.7", "198.51.100.7", true},
		{"198.51.100.7", "64:ff9b::198.51.100.7", true},
		{"198.51.100.7", "64:ff9b::198.51.100.8", false},
		{"198.51.100.0/24", "64:ff9b::198.51.100.8", true},
		{"64:ff9b::198.51.100.7", "198.51.100.7", true},
		{"64:ff9b::198.51.100.0/120", "198.51.100.7", true},
		{"64:ff9b::/96", "64:ff9b::198.51.100.7", true},
		{"64:ff9b::/64", "64:ff9b::198.51.100.7", true},
		{"::ffff:198.51.100.7", "64:ff9b::198.51.100.7", true},
		{"198.51.100.7", "64:ff9b:1::198.51.100.7", false},
	} {
		l := newACL([]string{c.entry}, key, true)
		require.Equal(t, c.want, l.denies(r, netip.MustParseAddr(c.address)), "%s: %s", c.entry, c.address)
	}
	require.False(t, newACL([]string{"0.0.0.0/0", "::/0"}, key, false).allows(r, netip.Addr{}))
}
