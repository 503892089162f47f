// Package bench measures a Parley server from outside, as its clients see it, and
// beside it other servers that do a part of the same work.
//
// One process holds the load generator and a mock model (Model). The server is a
// process of its own, so that /proc tells its processor time, memory and disk
// writes apart from those of the load. Every scenario starts a fresh server.
//
// A figure is believed only if three things hold:
//
//   - Everything was counted. Each token of the mock model carries the number of
//     its run, its index and the time at which it was due. A follower that misses
//     one, sees one twice or sees two in the wrong order fails the scenario, which
//     then reports no figures.
//   - Latency is taken open loop: requests and tokens have times fixed in advance,
//     and the measurement begins at that time, also if the load generator is late.
//     How late it was is reported. Capacity is taken closed loop and says so.
//   - The limits of the machine (a synced write, a round trip on the loopback) are
//     measured in every repeat, and foreign load is recorded.
package bench
