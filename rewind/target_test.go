package rewind

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
)

// runTarget is the main function of the Go programs that are rewound.
func runTarget(name string) {
	switch name {
	case "memory":
		targetMemory()
	case "http":
		targetHTTP()
	default:
		fmt.Println("no such target")
	}
}

// commands answers each line of input with a line of output.
func commands(handle func(words []string) string) {
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		w := strings.Fields(in.Text())
		if len(w) == 0 {
			continue
		}
		fmt.Println(handle(w))
	}
}

func targetMemory() {
	data := make([]byte, 16<<20)
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
	count, junk := 0, map[int][]byte{}
	commands(func(w []string) string {
		switch w[0] {
		case "mutate":
			count++
			for i := 0; i < len(data)/2; i += 4096 {
				data[i]++
			}
			for i := range 2000 {
				junk[count*10000+i] = make([]byte, 700)
			}
			for range 4 {
				go func() { time.Sleep(time.Millisecond) }()
			}
			if count%3 == 0 {
				runtime.GC()
			}
		}
		sum := 0
		for i := 0; i < len(data); i += 4096 {
			sum += int(data[i])
		}
		return fmt.Sprintf("%d %d %d", count, len(junk), sum)
	})
}

func targetHTTP() {
	counter, store := 0, map[string]string{}
	mux := http.NewServeMux()
	mux.HandleFunc("/add", func(w http.ResponseWriter, r *http.Request) {
		counter++
		for i := range 500 {
			store[fmt.Sprintf("%d:%d", counter, i)] = strings.Repeat("v", 50)
		}
		fmt.Fprintf(w, "%d", counter)
	})
	mux.HandleFunc("/state", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%d %d", counter, len(store)) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	fmt.Println(l.Addr())
	_ = http.Serve(l, mux)
}
