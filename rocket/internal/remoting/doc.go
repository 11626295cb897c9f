// Package remoting asks RocketMQ's servers what the client library does not:
// what a broker is, where the brokers are, whether a broker still answers, and
// to make a topic and say whether that worked.
//
// # Wire format
//
// Name servers and brokers speak one protocol over TCP. A frame is
//
//	length   4 bytes  of what follows
//	header   4 bytes  the first is the encoding (0 is JSON), three the length
//	         n bytes  JSON: code, language, version, opaque, flag, remark, extFields
//	body     the rest
//
// all numbers big-endian. A response carries the request's opaque number and
// the lowest bit of flag; its code is 0 for success and its version is the
// server's. Requests may follow each other without waiting, and responses come
// in any order.
//
// # Invariants
//
//   - A [Conn] ends once, for one reason; every call that waits then returns,
//     with that reason.
//   - A call that gives up leaves nothing behind; its late response is dropped.
//   - A frame that is not one, or is longer than 16 MiB, ends the connection:
//     there is no way to find the next frame.
package remoting
