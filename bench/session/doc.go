// Package session compares sessions on one Redis: ours, alexedwards/scs with
// goredisstore, and gorilla/sessions with boj/redistore, each used as its
// documentation shows, in a mix of requests of which only some need their session.
package session
