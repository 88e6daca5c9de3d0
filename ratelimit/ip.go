package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// ByIP counts by the address of the peer: an IPv4 address, or the /64 prefix of an IPv6 address, without zone. An
// IPv6 address that represents an IPv4 address (mapped, or NAT64's 64:ff9b::/96) counts as the IPv4 address. ByIP
// reads no header, so behind a proxy every request has the proxy's address; see [IPOptions]. If the peer has no IP
// address, as on a Unix socket, the error is ErrNoKey.
func ByIP() KeyFunc {
	key, err := IPOptions{}.Key()
	if err != nil {
		panic(err) // the defaults are valid
	}
	return key
}

// IPOptions describes how clients' addresses become keys.
//
// Behind proxies of your own, name the proxies and the header in which they report the address of their client. The
// header is read only if the peer is one of them. It is read from the right, where the nearest proxy has written. The
// first address that does not belong to a trusted proxy is the client's address. So an address that the client itself
// has written into the header does not count. If there is no such address, or an element before it is not an address
// ("unknown", an obfuscated name, a syntax error), the last trusted proxy's address counts.
type IPOptions struct {
	// IPv6Bits is the length of the prefix by which an IPv6 address is counted, 32 to 128. The zero value means 64,
	// because a single customer usually has at least a /64.
	IPv6Bits int
	// TrustedProxies lists the addresses of your own proxies and no others. 0.0.0.0/0 and ::/0 are refused.
	TrustedProxies []netip.Prefix
	// Header is the header in which the proxies report the client's address: "Forwarded" (RFC 7239), or a header with
	// an address or a list of addresses, such as "X-Forwarded-For" or "X-Real-Ip". Each proxy must append to it or
	// replace it. It is required with trusted proxies.
	Header string
	// TrustUnixSocket also trusts clients that connect through a Unix socket that the server listens on, such as a
	// proxy on the same machine.
	TrustUnixSocket bool
}

// Key returns the key function with these options. An error names the field that is wrong.
func (o IPOptions) Key() (KeyFunc, error) {
	client, err := o.Client()
	if err != nil {
		return nil, err
	}
	bits := cmp.Or(o.IPv6Bits, 64)
	return func(ctx context.Context, r *http.Request) (string, error) {
		a := netaddr.Plain(client(ctx, r))
		if !a.IsValid() {
			return "", fmt.Errorf("%w: peer address %q", ErrNoKey, r.RemoteAddr)
		}
		key := a.String()
		if a.Is6() {
			p, _ := a.Prefix(bits) // check has refused other lengths
			key = p.String()
		}
		noteAddressKey(ctx, key)
		return key, nil
	}, nil
}

// Client returns a function that returns the complete address of a request's client. The address has no zone, and is
// not IPv4-mapped. If the peer has no address and is not trusted to report one, the function returns the zero Addr.
func (o IPOptions) Client() (func(ctx context.Context, r *http.Request) netip.Addr, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Header = textproto.CanonicalMIMEHeaderKey(o.Header)
	o.TrustedProxies = slices.Clone(o.TrustedProxies)
	for i, p := range o.TrustedProxies {
		o.TrustedProxies[i] = netaddr.Unmap(p)
	}
	return o.client, nil
}

func (o IPOptions) check() error {
	trusts := len(o.TrustedProxies) > 0 || o.TrustUnixSocket
	switch {
	case o.IPv6Bits != 0 && (o.IPv6Bits < 32 || o.IPv6Bits > 128):
		return fmt.Errorf("ratelimit: IPOptions.IPv6Bits is %d, want 32 to 128", o.IPv6Bits)
	case trusts && o.Header == "":
		return errors.New("ratelimit: IPOptions.Header is empty, but TrustedProxies is set")
	case strings.ContainsAny(o.Header, " \t\r\n,:;"):
		return fmt.Errorf("ratelimit: IPOptions.Header is %q, which is not one header's name", o.Header)
	case o.Header != "" && !trusts:
		return fmt.Errorf("ratelimit: IPOptions.Header is %q, but there are no trusted proxies", o.Header)
	}
	for i, p := range o.TrustedProxies {
		switch {
		case !p.IsValid():
			return fmt.Errorf("ratelimit: IPOptions.TrustedProxies[%d] is not a prefix", i)
		case netaddr.Unmap(p).Bits() == 0:
			return fmt.Errorf("ratelimit: IPOptions.TrustedProxies[%d] is %v, which trusts every client", i, p)
		}
	}
	return nil
}
