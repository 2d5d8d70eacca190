package client_test

import (
	"context"
	"fmt"

	"github.com/pommelgym/pommel/client"
)

// cleanups stands in for testing.T in examples.
type cleanups []func()

func (c *cleanups) Cleanup(f func()) { *c = append(*c, f) }

func (c *cleanups) run() {
	for _, f := range *c {
		f()
	}
}

// One episode, from its instruction to its reward.
func ExampleSession() {
	var ends cleanups
	defer ends.run()
	addr, err := newFake().listen(&ends, "tcp", "127.0.0.1:0", "") // in earnest: pommel serve --world shop
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	c, err := client.Dial(addr, client.Options{Name: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	s, err := c.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	r, err := s.Reset(ctx, client.Request{Task: "buy", Seed: 7})
	for _, action := range []string{`click(selector="#submit-order")`, `finish()`} {
		if err != nil {
			break
		}
		r, err = s.Step(ctx, action)
	}
	if client.KindOf(err).Void() {
		fmt.Println("leave this episode out:", err)
		return
	}
	fmt.Println(r.Instruction, r.Step, r.Reward, r.Terminated)
	// Output: Buy it. 2 1 true
}
