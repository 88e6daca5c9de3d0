// Package config is the configuration of the rate-limiting proxy of package proxy.
//
// [Parse] reads a [Config] from YAML, and a program may also build one in Go. [Config.Resolve]
// fills in the defaults and checks it. Errors are of type [*FieldError] and name the line and
// the field. docs/proxy.md describes what the proxy does with each field.
package config
