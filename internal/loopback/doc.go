// Package loopback reserves TCP ports of this machine for servers that tests start,
// stop and start again at the same address. While such a server is down, its port must
// stay its own: other tests of the machine take free ports all the time, and so does
// every connection that the machine opens.
package loopback
