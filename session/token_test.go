package session

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session/storage"
)

// secretOf returns the secret in a token's text.
func secretOf(t testing.TB, text string) []byte {
	t.Helper()
	_, secret, _ := strings.Cut(text, ".")
	b, err := encoding.DecodeString(secret)
	require.NoError(t, err)
	return b
}

func TestTokensAreLongAndUnique(t *testing.T) {
	const n = 2000
	locators, secrets := map[storage.Locator]bool{}, map[string]bool{}
	ones := make([]int, 8*(16+32))
	for range n {
		tok, text := newToken(newLocator())
		secret := secretOf(t, text)
		locators[tok.locator], secrets[string(secret)] = true, true
		for i, b := range append(tok.locator[:], secret...) {
			for bit := range 8 {
				ones[8*i+bit] += int(b >> bit & 1)
			}
		}
	}
	require.Len(t, locators, n)
	require.Len(t, secrets, n)
	for i, count := range ones { // 179 is 8 standard deviations of a fair coin
		require.InDelta(t, n/2, count, 180, "bit %d is not random", i)
	}
}

func TestTokenHasTheDigestOfItsSecret(t *testing.T) {
	locator := newLocator()
	tok, text := newToken(locator)
	require.Equal(t, locator[:], tok.locator[:])
	require.Equal(t, storage.Digest(sha256.Sum256(secretOf(t, text))), tok.digest)
}

func TestParseTokenTakesOneTextOnly(t *testing.T) {
	good, text := newToken(newLocator())
	require.Len(t, text, 66)
	got, ok := parseToken(text)
	require.True(t, ok)
	require.True(t, got == good)

	loose := []byte(text) // decodes to the same bytes, except in strict mode
	alphabet := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	loose[65] = alphabet[strings.IndexByte(alphabet, loose[65])|1]

	for name, s := range map[string]string{
		"empty":                     "",
		"short":                     text[:65],
		"long":                      text + "A",
		"no dot":                    strings.Replace(text, ".", "A", 1),
		"dot moved":                 text[:21] + "." + text[21:22] + text[23:],
		"padding":                   text[:65] + "=",
		"standard 64":               text[:60] + "+/" + text[62:],
		"space":                     text[:30] + " " + text[31:],
		"line breaks":               text[:20] + "\r\n" + text[22:],
		"line breaks in the secret": text[:63] + "\r\n\n",
		"stray bits":                string(loose),
		"NUL":                       strings.Repeat("\x00", 66),
		"UTF-8":                     strings.Repeat("é", 33),
	} {
		_, ok := parseToken(s)
		require.False(t, ok, name)
	}
}

func TestFindReturnsOneTokenOnly(t *testing.T) {
	want, a := newToken(newLocator())
	_, b := newToken(newLocator())
	transport, err := newTransport(Options{})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		cookies []string
		found   bool
		sent    bool
	}{
		"none":               {nil, false, false},
		"other names":        {[]string{"session=" + a, "__Host-sessions=" + a}, false, false},
		"one":                {[]string{"x=1; __Host-session=" + a + "; y=2"}, true, true},
		"the same twice":     {[]string{"__Host-session=" + a, "__Host-session=" + a}, true, true},
		"two":                {[]string{"__Host-session=" + a + "; __Host-session=" + b}, false, true},
		"two, then the same": {[]string{"__Host-session=" + a + "; __Host-session=" + b + "; __Host-session=" + a}, false, true},
		"garbage and one":    {[]string{"__Host-session=garbage; __Host-session=" + a}, true, true},
		"garbage":            {[]string{"__Host-session=garbage"}, false, true},
		"empty":              {[]string{"__Host-session="}, false, true},
		"quoted":             {[]string{`__Host-session="` + a + `"`}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{Header: http.Header{"Cookie": tt.cookies}}
			tok, ok, sent := transport.find(r)
			require.Equal(t, tt.found, ok)
			require.Equal(t, tt.sent, sent)
			require.True(t, !ok || tok == want)
		})
	}
	_, ok, sent := transport.find(nil)
	require.False(t, ok || sent)
}

// FuzzParseCookie checks that a token is found only in the form in which it was sent to the client.
func FuzzParseCookie(f *testing.F) {
	_, text := newToken(newLocator())
	for _, seed := range []string{
		"", "session", "session=", "session=" + text, "session=" + text + "; session=" + text,
		`session="` + text + `"`, "session=" + text[:65], "a=b; session =" + text, "session=" + strings.Repeat(".", 66),
		"session=" + text[:22] + "." + text[:43], ";;;=;", "session=" + strings.Repeat("A", 22) + "." + strings.Repeat("A", 43),
	} {
		f.Add(seed)
	}
	transport, err := newTransport(Options{Cookie: Cookie{Insecure: true}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, header string) {
		tok, ok, sent := transport.find(&http.Request{Header: http.Header{"Cookie": {header}}})
		if ok && (!sent || !strings.Contains(header, tok.locator.Key()+".")) {
			t.Fatalf("found a token that %q doesn't carry", header)
		}
		if !ok && tok != (token{}) {
			t.Fatal("a token without ok")
		}
		if tok, ok := parseToken(header); ok && header != tok.locator.Key()+"."+encoding.EncodeToString(secretOf(t, header)) {
			t.Fatalf("%q is a second text of a token", header)
		}
	})
}
