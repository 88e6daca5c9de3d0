package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// upstream checks an [Upstream].
func (k *checker) upstream(u Upstream, field string) {
	target, err := u.Target()
	if err != nil {
		k.add(field+".url", err)
		return
	}
	k.oneOf(field+".host", u.Host, "client", "upstream")
	k.oneOf(field+".http2", u.HTTP2, "", "cleartext")
	if u.HTTP2 == "cleartext" && target.Scheme != "http" {
		k.addf(field+".http2", "is cleartext, but the URL begins with %s://", target.Scheme)
	}
	if u.CA != "" && target.Scheme != "https" {
		k.addf(field+".ca", "is set, but the URL begins with %s://", target.Scheme)
	} else {
		_, err = u.TLS()
		k.add(field+".ca", err)
	}
	between(k, field+".response_timeout", u.ResponseTimeout, minTimeout, maxTimeout)
	between(k, field+".max_connections", u.MaxConnections, 0, 1<<20)
}

// Target returns the parsed URL. Its error doesn't contain a password that is in the URL.
func (u Upstream) Target() (*url.URL, error) {
	const want = "want one such as http://127.0.0.1:9000"
	target, err := url.Parse(u.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is not the address of a server, %s: %w", want, withoutURL(err))
	case target.Scheme != "http" && target.Scheme != "https" || target.Host == "":
		return nil, fmt.Errorf("%q is not the address of a server, %s", target.Redacted(), want)
	case target.User != nil || target.RawQuery != "" || target.Fragment != "":
		return nil, fmt.Errorf("%q has more than scheme, host and path", target.Redacted())
	case target.Port() != "" && !validPort(target.Port()):
		return nil, fmt.Errorf("%q needs a port from 1 to 65535", target.Redacted())
	}
	return target, nil
}

// TLS returns the settings of TLS connections to the upstream.
func (u Upstream) TLS() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: u.InsecureSkipVerify}
	if u.CA == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(u.CA)
	if err != nil {
		return nil, err
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate in PEM", u.CA)
	}
	return conf, nil
}

// withoutURL returns the cause of a [*url.Error], whose own text contains the URL and perhaps a password.
func withoutURL(err error) error {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return wrong.Err
	}
	return err
}
