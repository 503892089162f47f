// Package bench measures a Parley server from outside, from the view of its clients.
// For comparison it also measures other servers that do a part of the same work.
//
// One process contains the load generator and a mock model (Model). The server is a
// separate process, so that /proc shows its CPU time, memory and disk writes without
// those of the load. Every scenario starts a fresh server.
//
// A figure is valid only under three conditions:
//
//   - Every token is counted. A token of the mock model contains the number of its
//     run, its index and the time at which it was due. If a follower receives a token
//     twice, out of order or not at all, the scenario fails and reports no figures.
//   - Latency is measured open loop: requests and tokens have planned times, and the
//     measurement begins at that time, even if the load generator is late. Its
//     lateness is reported. Capacity is measured closed loop, and its name says so.
//   - The limits of the machine (a synced write, a round trip on the loopback) are
//     measured in every repeat, and the load of other processes is recorded.
package bench
