// Package testhost starts servers and processes on this machine. They end with the test that starts them.
//
//   - [StartRedis] starts a redis-server, [StartCluster] a Cluster of six nodes, and [StartSentinel] a master, its
//     replica and a Sentinel. Tests can kill, stop, pause and restart them. Package faultproxy simulates faults of
//     the network. [RunRedis] is for programs without a testing.TB.
//   - [StartMiniredis] starts a Redis in the test's process whose clock the test sets.
//   - [StartProcess] runs a test in several processes. The test's own process, the parent, starts the others, talks to
//     them, pauses them and kills them. They run the same test up to its call of [ServeProcess].
//   - [ReservePort] reserves a port for a server that a test stops and starts again at the same address. Otherwise,
//     the port could be assigned to another server or to an outgoing connection meanwhile.
package testhost
