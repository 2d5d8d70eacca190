// Package firecracker speaks to a Firecracker: requests of HTTP over a Unix socket, each of which is
// answered when it has been carried out, and connections with the guest over a second socket.
//
//	c, err := firecracker.Connect(ctx, socket, ended)   // a process that was just started
//	err = c.Boot(ctx, machine)                            // or c.Load(ctx, snapshot): once
//	err = c.Stop(ctx); err = c.Save(ctx, snapshot)
//	conn, err := firecracker.Dial(ctx, vsock, port)
//
// A Firecracker holds one machine in its life, and none of it can be put back in place: the state of
// its processor lies in the host's kernel. A reset is another process that loads the same snapshot.
package firecracker
