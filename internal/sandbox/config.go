package sandbox

import (
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

// Config describes a sandbox.
type Config struct {
	// Hostname is what processes inside see.
	Hostname string `json:"hostname"`
	// Users exist inside, beside root and nobody. Each gets a home folder.
	Users []User `json:"users"`
	// Binds are shown read-only, beside the programs and libraries of the host.
	Binds []Bind `json:"binds"`
	// Devices are the host's, by their names in /dev, beside those that every program needs.
	Devices []string `json:"devices,omitempty"`
	// Folders are made in memory.
	Folders []Folder `json:"folders"`
	// FilesBytes bounds the file system in memory.
	FilesBytes int64 `json:"files_bytes"`
	// Clock, if given, has processes live by a clock of the sandbox's own.
	Clock *Clock `json:"clock,omitempty"`
	// SharedNetwork leaves the processes in the network of whoever starts the sandbox: where
	// that is a machine of their own, it is theirs anyway.
	SharedNetwork bool `json:"shared_network,omitempty"`
	// Limits bound the processes as a whole.
	Limits Limits `json:"-"`
}

// Clock describes the wall clock and the randomness that processes get.
type Clock struct {
	// Start is the instant that they begin at. It stands still until it is set.
	Start time.Time `json:"start"`
	// Label tells the random bytes of one kind of sandbox from those of another.
	Label string `json:"label"`
}

// User is an unprivileged account; UID serves as its group too.
type User struct {
	Name string `json:"name"`
	UID  int    `json:"uid"`
	Home string `json:"home"`
}

// Bind shows a file or folder of the host.
type Bind struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Private hides it from all but the keeper.
	Private bool `json:"private,omitempty"`
}

// Folder is a folder to make.
type Folder struct {
	Path string `json:"path"`
	Mode uint32 `json:"mode"`
	UID  int    `json:"uid"`
}

// Limits bound what all processes of a sandbox may use together; 0 is no bound.
type Limits struct {
	MemoryBytes int64
	Processes   int
}

// Process is something to run inside.
type Process struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	UID  int      `json:"uid"`
	// Groups are the host's that it is in, beside its own: for devices.
	Groups []int `json:"groups,omitempty"`
	// Nice lowers the priority.
	Nice int `json:"nice,omitempty"`
	// OOMScore from 0 to 1000: higher is killed first when memory runs out.
	OOMScore int `json:"oom_score,omitempty"`
	// RealRandom gives the process and its children the kernel's random bytes until the
	// first Reseed: who attacks a program by guessing its memory's places has to guess.
	RealRandom bool `json:"real_random,omitempty"`
	// RealClock leaves the process and its children out of the sandbox's clock: an emulator of
	// a machine, whose programs have a clock of their own.
	RealClock bool `json:"real_clock,omitempty"`
	// SameAddresses lays the memory of the process and its children out in the same way in
	// every sandbox: some programs mix addresses into what they draw at random.
	SameAddresses bool `json:"same_addresses,omitempty"`
	// Pid is the number that the process is to get, for the same reason; 0 is any. It is a
	// wish: Proc.Pid tells which it got.
	Pid int `json:"pid,omitempty"`
	// Landlock limits files and ports further; nil does not.
	Landlock *sys.Landlock `json:"landlock,omitempty"`
}

// Probe asks whether something inside is ready. Exactly one of HTTP, TCP and Command is
// set. It is tried until it holds or Timeout has passed.
type Probe struct {
	HTTP string `json:"http,omitempty"`
	TCP  string `json:"tcp,omitempty"`
	// Command must exit with 0.
	Command *Process      `json:"command,omitempty"`
	Timeout time.Duration `json:"timeout"`
}

// Exit is how a process ended.
type Exit struct {
	Code   int
	Signal string
}

// String says it for a message.
func (e Exit) String() string {
	if e.Signal != "" {
		return "killed by signal: " + e.Signal
	}
	return "exited with code " + itoa(e.Code)
}
