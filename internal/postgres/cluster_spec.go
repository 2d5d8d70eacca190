package postgres

import (
	"fmt"
	"sort"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
)

// Names inside a cluster.
const (
	// Superuser owns the cluster; only Pommel, root outside the world, gets in as it.
	Superuser = "postgres"
	// JudgeRole reads every table and may decode the log of changes. It is no superuser:
	// what the application's role defines (a view, an operator) must not run with all power.
	JudgeRole = "pommel_judge"
	// Port is the TCP port inside a world; each world has its own loopback.
	Port = 5432
)

// Spec is what a cluster is made from.
type Spec struct {
	// Database is owned by Role, the application's, which logs in with Password over TCP.
	Database, Role, Password string
	// Init is run in order as Role.
	Init []SQLFile
	// Settings are the world's own; they may not touch what the judge relies on.
	Settings map[string]string
}

// SQLFile is a named SQL script; Name is shown in errors.
type SQLFile struct {
	Name    string
	Content string
}

// settings of every cluster. A world is thrown away or put back, never recovered, so
// nothing is synced and nothing works in the background. synchronous_commit stays on: what
// is flushed is then exactly what is committed, and the row-change feed may rely on it.
func baseSettings(major int) map[string]string {
	s := map[string]string{
		"fsync":                            "off",
		"full_page_writes":                 "off",
		"synchronous_commit":               "on",
		"wal_level":                        "logical",
		"wal_init_zero":                    "off",
		"wal_recycle":                      "off",
		"max_wal_size":                     "256MB",
		"min_wal_size":                     "2MB",
		"wal_buffers":                      "256kB",
		"wal_writer_delay":                 "10s",
		"checkpoint_timeout":               "1d",
		"autovacuum":                       "off",
		"track_counts":                     "off",
		"bgwriter_delay":                   "10s",
		"bgwriter_lru_maxpages":            "0",
		"shared_buffers":                   "16MB",
		"huge_pages":                       "off",
		"max_connections":                  "50",
		"max_wal_senders":                  "4",
		"max_replication_slots":            "4",
		"max_worker_processes":             "0",
		"max_parallel_workers_per_gather":  "0",
		"max_parallel_maintenance_workers": "0",
		"max_logical_replication_workers":  "0",
		"restart_after_crash":              "off",
		"jit":                              "off",
		"logging_collector":                "off",
		"log_destination":                  "stderr",
		"log_min_messages":                 "warning",
		"log_checkpoints":                  "off",
		"log_line_prefix":                  "",
		"update_process_title":             "off",
		"password_encryption":              "md5",
		"timezone":                         "UTC",
		"log_timezone":                     "UTC",
		"lc_messages":                      "C",
		"unix_socket_permissions":          "0700",
		"data_sync_retry":                  "on",
		"authentication_timeout":           "30s",
	}
	if major >= 18 {
		// Worker processes and io_uring would both be state that a reset cannot put back.
		s["io_method"] = "sync"
		s["md5_password_warnings"] = "off"
	}
	return s
}

// fixedSettings may not be changed by a world: the judge, the feed, the isolation and
// the repeatability of episodes rest on them.
var fixedSettings = strings.Fields(`
	fsync synchronous_commit wal_level max_wal_senders max_replication_slots max_worker_processes restart_after_crash
	max_logical_replication_workers autovacuum listen_addresses port unix_socket_directories
	unix_socket_permissions unix_socket_group hba_file ident_file data_directory config_file
	external_pid_file shared_preload_libraries session_preload_libraries local_preload_libraries
	archive_mode archive_command archive_library password_encryption io_method logging_collector log_destination`)

func (s Spec) check() error {
	if s.Database == "" || s.Role == "" {
		return fault.New(fault.InvalidArgument, "a cluster needs a database and a role")
	}
	for _, taken := range []string{Superuser, JudgeRole} {
		if s.Role == taken {
			return fault.New(fault.InvalidArgument, "the role %q is Pommel's own; choose another", taken)
		}
	}
	for _, taken := range []string{"postgres", "template0", "template1", "replication", "all"} {
		if s.Database == taken {
			return fault.New(fault.InvalidArgument, "the database %q is PostgreSQL's own; choose another name", taken)
		}
	}
	for key := range s.Settings {
		if err := CheckSetting(key); err != nil {
			return err
		}
	}
	return nil
}

// CheckSetting says whether a world may set the PostgreSQL parameter.
func CheckSetting(key string) error {
	if strings.Trim(strings.ToLower(key), "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" || key == "" {
		return fault.New(fault.InvalidArgument, "%q is not the name of a PostgreSQL setting", key)
	}
	for _, f := range fixedSettings {
		if strings.EqualFold(f, key) {
			return fault.New(fault.InvalidArgument, "the setting %s is fixed: resets and the judge depend on it", f)
		}
	}
	return nil
}

func (s Spec) conf(major int) string {
	all := baseSettings(major)
	for k, v := range s.Settings {
		all[strings.ToLower(k)] = v
	}
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s = %s\n", k, quoteLiteral(all[k]))
	}
	return b.String()
}

// hba lets the application in by password over loopback and root (which exists only
// outside the world) over the unix socket. Nobody else, and no other way.
func (s Spec) hba() string {
	role := quoteIdent(s.Role)
	return fmt.Sprintf(`local all %[1]s,%[2]s,%[3]s peer map=pommel
host %[4]s %[3]s 127.0.0.1/32 md5
`, Superuser, JudgeRole, role, quoteIdent(s.Database))
}

func (s Spec) ident() string {
	return fmt.Sprintf("pommel root %s\npommel root %s\npommel root %s\n", Superuser, JudgeRole, quoteIdent(s.Role))
}

func quoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
