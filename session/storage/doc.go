// Package storage defines the interface between package session and its stores. Programs
// need it only to write a store of their own, which package storetest checks.
package storage
