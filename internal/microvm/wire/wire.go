// Package wire is what a world and the agent inside its machine say to each other: one JSON
// object a line, over the first port of the machine's serial device. The other ports are
// streams: the agent connects each with the database when it is asked to. A machine on vsock has
// connections in the place of ports.
package wire

import (
	"time"

	"github.com/pommelgym/pommel/internal/sandbox"
)

// Request is a question to the agent; exactly one field beside ID is set.
type Request struct {
	ID int `json:"id"`
	// Hello asks for the state of the services.
	Hello bool `json:"hello,omitempty"`
	// Clock sets the instant that services read.
	Clock *time.Time `json:"clock,omitempty"`
	// Reseed makes the services' random bytes a function of a seed.
	Reseed *Reseed `json:"reseed,omitempty"`
	// Restart ends the services and starts them again, from nothing but the plan. The answer
	// comes at once; events tell how far it is, as at the first start.
	Restart bool `json:"restart,omitempty"`
	// Dial connects a stream with the database; it is the number of a port, from 1.
	Dial int `json:"dial,omitempty"`
	// Check asks whether all services live. Ends until now are told before the answer.
	Check bool `json:"check,omitempty"`
	// Log asks for a service's last output.
	Log string `json:"log,omitempty"`
	// Members asks for the processes of the services.
	Members bool `json:"members,omitempty"`
	// Exec runs a program as root of the machine, outside of what confines the services.
	Exec *Exec `json:"exec,omitempty"`
}

// Reseed asks for other random bytes.
type Reseed struct {
	Label string `json:"label"`
	Seed  uint64 `json:"seed"`
}

// Exec is a program to run.
type Exec struct {
	Argv    []string      `json:"argv"`
	Timeout time.Duration `json:"timeout"`
}

// Message is an answer (ID set) or an event.
type Message struct {
	ID  int    `json:"id,omitempty"`
	Err string `json:"err,omitempty"`

	State   *State           `json:"state,omitempty"`
	Text    string           `json:"text,omitempty"` // of Log and Exec
	Code    int              `json:"code,omitempty"` // of Exec
	Members []sandbox.Member `json:"members,omitempty"`

	// Stage is an event of the start.
	Stage string `json:"stage,omitempty"`
	// Ended is the end of a service.
	Ended *Ended `json:"ended,omitempty"`
}

// State is where the services are.
type State struct {
	Ready bool `json:"ready"`
	// Service and Failed say which service could not be started, and why.
	Service string `json:"service,omitempty"`
	Failed  string `json:"failed,omitempty"`
	Log     string `json:"log,omitempty"` // of that service
	// NoClock is why the services live by the machine's own clock.
	NoClock string `json:"no_clock,omitempty"`
	// Now is the instant that services read.
	Now time.Time `json:"now"`
}

// Ended is the end of a service.
type Ended struct {
	Service string `json:"service"`
	How     string `json:"how"`
	Log     string `json:"log"`
}

// Plan is what the agent does at the start. It is a file of the world's disk.
type Plan struct {
	Sandbox  sandbox.Config `json:"sandbox"`
	Services []Service      `json:"services"`
	// Processes bounds how many the services may have.
	Processes int `json:"processes"`
	// Database is the socket that streams lead to, inside the sandbox.
	Database string `json:"database"`
	// Ports are the TCP ports of the loopback that the browser uses.
	Ports []uint16 `json:"ports"`
}

// Service is one of the world's, in the order of their start.
type Service struct {
	Process sandbox.Process `json:"process"`
	// CopyFrom and CopyTo, if given, are a private folder that is copied for the process first.
	CopyFrom string `json:"copy_from,omitempty"`
	CopyTo   string `json:"copy_to,omitempty"`
	// Cluster is the data folder of a PostgreSQL server, which says by itself when it is ready.
	Cluster string `json:"cluster,omitempty"`
	// Probe tells when any other service is ready.
	Probe *sandbox.Probe `json:"probe,omitempty"`
}

// Names on the world's disk, and where the agent mounts it.
const (
	PlanFile = "plan.json"
	DiskDir  = "/pommel"
)

// A machine without a serial device of many ports is reached over vsock, at these ports; VsockArg on
// the kernel's command line says so. Those of the browser's are ForwardPort and the TCP port.
const (
	VsockArg    = "pommel.link=vsock"
	AgentPort   = 1024
	StreamPort  = 1025
	ForwardPort = 1 << 16
)

// Streams is how many ports beside the agent's own a machine has: for the judge's queries,
// its row changes, and the setup of tasks.
const Streams = 3
