// Package storage is what package session and its stores say to each other. Programs need it
// only to write a store of their own, which package storetest checks.
package storage
