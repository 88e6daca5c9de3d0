// Package session compares sessions on one Redis. The contenders are this library, alexedwards/scs with
// goredisstore, and gorilla/sessions with boj/redistore, each used as its documentation shows. Only some of the
// requests need their session.
package session
