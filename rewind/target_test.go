package rewind

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
)

// runTarget is the main function of the Go programs that are rewound.
func runTarget(name string) {
	switch name {
	case "memory":
		targetMemory()
	case "sparse":
		targetSparse()
	case "mapped":
		targetMapped()
	case "http":
		targetHTTP()
	case "app":
		targetApp()
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

// targetSparse has much memory of which it uses a page here and there.
func targetSparse() {
	const size, step = 128 << 20, 128 << 10
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = unix.Madvise(data, unix.MADV_NOHUGEPAGE)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < size; i += step {
		data[i] = 1
	}
	commands(func(w []string) string {
		switch w[0] {
		case "write": // in new pages beside the old ones
			for i := 4096; i < size; i += step {
				data[i]++
			}
		case "clear":
			for i := 0; i < size; i += step {
				data[i], data[i+4096] = 0, 0
			}
		}
		sum := 0
		for i := 0; i < size; i += step {
			sum += int(data[i])<<8 + int(data[i+4096])
		}
		return strconv.Itoa(sum)
	})
}

// targetMapped has a file mapped, into which it writes when it is told to.
func targetMapped() {
	f, err := os.OpenFile(os.Getenv("MAPPED_FILE"), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Truncate(64 << 10)
	}
	var data []byte
	if err == nil {
		data, err = unix.Mmap(int(f.Fd()), 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	commands(func(w []string) string {
		if w[0] == "write" {
			data[4096]++
		}
		return strconv.Itoa(int(data[4096]))
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
	mux.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		counter++
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

// targetApp is an application with a pool of connections to a database in the same tree.
func targetApp() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "host="+os.Getenv("APP_DB")+" user=postgres dbname=postgres pool_max_conns=3 pool_min_conns=3 pool_health_check_period=1h pool_max_conn_lifetime=24h pool_max_conn_idle_time=24h")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := 0
	mux := http.NewServeMux()
	one := func(w http.ResponseWriter, sql string, args ...any) {
		var v string
		if err := pool.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%d %s", served, v)
	}
	mux.HandleFunc("/add", func(w http.ResponseWriter, r *http.Request) {
		served++
		one(w, "insert into t(v,n) values($1,$2) returning id::text", r.URL.Query().Get("v"), served)
	})
	mux.HandleFunc("/state", func(w http.ResponseWriter, _ *http.Request) {
		one(w, "select count(*)||' '||sum(n)||' '||max(id) from t")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	fmt.Println(l.Addr())
	_ = http.Serve(l, mux)
}
