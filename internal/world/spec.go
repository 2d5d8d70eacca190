package world

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/yamlfile"
)

// Spec is a checked world.yaml.
type Spec struct {
	Name  string `yaml:"name,required"`
	Title string `yaml:"title"`
	// Clock is the instant at which episodes start.
	Clock    time.Time `yaml:"clock"`
	Build    *Build    `yaml:"build"`
	Services []Service `yaml:"services,required"`
	Browser  Browser   `yaml:"browser,required"`
	Limits   Limits    `yaml:"limits"`
	// Driver is how worlds are put back unless the caller says otherwise; "" leaves it to the host.
	Driver string `yaml:"driver"`
	// Machine is what the driver microvm gives the services.
	Machine Machine `yaml:"machine"`
	// Tasks is the folder of task files, relative to Dir.
	Tasks string `yaml:"tasks"`
	// Bench is typical work, for benchmarks.
	Bench Bench `yaml:"bench"`

	// Dir is the folder of world.yaml.
	Dir string `yaml:"-"`

	file *yamlfile.File
}

// Build makes the application's files, on the host, once per content of Inputs.
type Build struct {
	Command []string `yaml:"command,required"`
	Dir     string   `yaml:"dir"`
	Inputs  []string `yaml:"inputs,required"`
}

// Service is a database or a command.
type Service struct {
	Name     string            `yaml:"name,required"`
	Postgres *Postgres         `yaml:"postgres"`
	Command  []string          `yaml:"command"`
	Env      map[string]string `yaml:"env"`
	Ready    *Ready            `yaml:"ready"`
}

// Postgres is the world's database.
type Postgres struct {
	Database string            `yaml:"database,required"`
	Role     string            `yaml:"role,required"`
	Init     []string          `yaml:"init"`
	Settings map[string]string `yaml:"settings"`
}

// Ready says how to know that a service serves: exactly one of HTTP, TCP and Command.
type Ready struct {
	HTTP    string        `yaml:"http"`
	TCP     string        `yaml:"tcp"`
	Command []string      `yaml:"command"`
	Timeout time.Duration `yaml:"timeout"`
}

// Browser says what the agent's browser shows and may reach.
type Browser struct {
	StartURL string   `yaml:"start_url,required"`
	Allow    []string `yaml:"allow"`
	Viewport Viewport `yaml:"viewport"`
	Locale   string   `yaml:"locale"`
	Timezone string   `yaml:"timezone"`
	// Scale is image pixels per CSS pixel in screenshots.
	Scale float64 `yaml:"scale"`
	// Uploads is a folder, relative to world.yaml, of files that agents may upload.
	Uploads string `yaml:"uploads"`
}

// Viewport is the size of a page in CSS pixels.
type Viewport struct {
	Width  int `yaml:"width,required"`
	Height int `yaml:"height,required"`
}

// Limits bound a whole world.
type Limits struct {
	Memory    Bytes `yaml:"memory"`
	Processes int   `yaml:"processes"`
}

// Machine is the machine in which services run under the driver microvm.
type Machine struct {
	// Memory holds all that the services have and all files that they write.
	Memory Bytes `yaml:"memory"`
	// Packages are Debian's that the services need, beside PostgreSQL's.
	Packages []string `yaml:"packages"`
}

// Bench names a task, a page and the actions that benchmarks make on it.
type Bench struct {
	Task    string        `yaml:"task"`
	URL     string        `yaml:"url"`
	Actions []BenchAction `yaml:"actions"`
}

// BenchAction is one action with a name for the report.
type BenchAction struct {
	Name string `yaml:"name,required"`
	Do   string `yaml:"do,required"`
}

// Bytes is an amount of memory, written as 512MiB or 2GiB.
type Bytes int64

var _ encoding.TextUnmarshaler = (*Bytes)(nil)

var byteUnits = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// UnmarshalText reads a number with a unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(string(text), u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || f <= 0 || f > 1<<20 {
			break
		}
		*b = Bytes(f * float64(u.size))
		return nil
	}
	return fmt.Errorf("expected an amount of memory such as 512MiB or 2GiB, got %q", text)
}

// String writes the amount in the largest unit that is exact.
func (b Bytes) String() string {
	for i := len(byteUnits) - 1; i > 0; i-- {
		if u := byteUnits[i]; int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b)>>10, 10) + "KiB"
}

// browserName names the browser among the services.
const browserName = "browser"

// database is the service that is the database, and its place in the file.
func (s *Spec) database() (Service, int) {
	for i, svc := range s.Services {
		if svc.Postgres != nil {
			return svc, i
		}
	}
	return Service{}, -1
}
