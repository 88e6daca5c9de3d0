package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
)

// KeyFunc tells what a request is counted by. It is called once per request, with the
// request's properties in ctx. An error that is [ErrNoKey], or "", says that the request
// has no such thing; [Policy] says what happens then. A key of more than 128 bytes is
// replaced by its hash. On a raw connection, r has only the peer's address.
type KeyFunc func(ctx context.Context, r *http.Request) (string, error)

// ByIP counts by the address of the peer: an IPv4 address, or the /64 of an IPv6
// address, without zone. IPv4 inside of IPv6 (mapped, or NAT64's 64:ff9b::/96) is that
// IPv4 address. No header is read, so behind a proxy every request has the proxy's
// address. A peer without an IP address, such as on a Unix socket, is ErrNoKey.
func ByIP() KeyFunc {
	key, err := IPOptions{}.Key()
	if err != nil {
		panic(err) // the defaults are valid
	}
	return key
}

// IPOptions describes how peers' addresses become keys.
type IPOptions struct {
	// IPv6Bits is the length of the prefix that an IPv6 address is counted by, 32 to
	// 128. Zero means 64, which is what one line has at least.
	IPv6Bits int
}

// Key returns the key function of [ByIP] with these options. An error names the field
// that is out of range.
func (o IPOptions) Key() (KeyFunc, error) {
	if o.IPv6Bits == 0 {
		o.IPv6Bits = 64
	}
	if o.IPv6Bits < 32 || o.IPv6Bits > 128 {
		return nil, fmt.Errorf("ratelimit: IPOptions.IPv6Bits is %d, want 32 to 128", o.IPv6Bits)
	}
	return func(_ context.Context, r *http.Request) (string, error) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return "", fmt.Errorf("%w: peer address %q", ErrNoKey, r.RemoteAddr)
		}
		return o.key(peer.Addr()), nil
	}, nil
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func (o IPOptions) key(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is4() {
		return a.String()
	}
	// Prefix fails only for lengths that Key refuses.
	p, _ := a.Prefix(o.IPv6Bits)
	return p.String()
}

// ByHeader counts by the value of a request header, such as "X-Api-Key". Only a hash of
// it is kept, as it may be a credential. A request without it, or with an empty one, is
// ErrNoKey. Values that nobody has verified can be made up: a caller with many of them
// has many quotas.
func ByHeader(name string) KeyFunc {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return func(_ context.Context, r *http.Request) (string, error) {
		lines := r.Header[name]
		empty := true
		for _, line := range lines {
			empty = empty && line == ""
		}
		if empty {
			return "", fmt.Errorf("%w: no header %q", ErrNoKey, name)
		}
		return digest(append([]string{name}, lines...)...), nil
	}
}

const maxSubjectLen = 128

// bounded returns key, or its hash if it is long.
func bounded(key string) string {
	if len(key) <= maxSubjectLen {
		return key
	}
	return digest(key)
}

// digest hashes parts so that no two lists of parts look alike: 128 bits of SHA-256.
func digest(parts ...string) string {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return "sha256-" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
