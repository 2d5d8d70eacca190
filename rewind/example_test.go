package rewind_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/pommelgym/pommel/rewind"
)

// A shell counts lines; after a rewind it has never seen the last ones.
func Example() {
	cmd := exec.Command("/bin/sh", "-c", `n=0; echo ready; while read -r _; do n=$((n+1)); echo $n; done`)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	answers := bufio.NewScanner(out)
	ask := func() string {
		fmt.Fprintln(in, "line")
		answers.Scan()
		return answers.Text()
	}
	answers.Scan() // ready

	ctx := context.Background()
	tree, err := rewind.Attach(rewind.Options{Roots: []int{cmd.Process.Pid}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tree.Close()
	ask()
	snapshot, err := tree.Snapshot(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("before:", ask(), ask(), ask())
	if _, err := tree.Rewind(ctx, snapshot); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("again: ", ask(), ask())
	// Output:
	// before: 2 3 4
	// again:  2 3
}

func ExampleProbe() {
	for _, f := range rewind.Probe() {
		if f.State != rewind.Yes {
			fmt.Fprintln(os.Stderr, f.Name, f.State, f.Reason)
		}
	}
	// Output:
}
