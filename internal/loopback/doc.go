// Package loopback reserves TCP ports of this machine for servers that tests start, stop and restart at
// the same address. While such a server is down, its port must not be assigned to another: other tests
// on the machine use free ports all the time, and so does every outgoing connection.
package loopback
