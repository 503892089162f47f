// Package config reads the settings of an operator: flags, variables, files, and
// the agents that files define.
//
// A value is taken from the first place that has it:
//
//	--drain 10s            the command line
//	PARLEY_DRAIN=10s       the environment
//	PARLEY_DRAIN=10s       .env in the working directory
//	drain: 10s             the file named by --config
//	                       the default
//
// Relative paths are relative to the working directory, wherever they stand.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"parley"
)

// Store contains the settings of every command that reads or writes sessions:
// where they are stored. It is embedded in commands. The tag var lists the
// variables of a flag; the first one that is set counts.
type Store struct {
	Data          string          `var:"PARLEY_DATA" type:"path" placeholder:"DIR" group:"Data" help:"Data folder: the database, the server's key, artifacts. It is made if it is missing. Default: a folder for the working folder below ~/.local/state/parley (or your state folder); or ./var, if only that holds data."`
	DatabaseURL   SecretURL       `var:"PARLEY_DATABASE_URL" placeholder:"URL" group:"Data" help:"PostgreSQL database for sessions, such as postgres://user@host/name. Several servers may share it (docs/cluster.md). Default: SQLite in the data folder."`
	DatabasePool  int             `var:"PARLEY_DATABASE_POOL" default:"8" placeholder:"N" group:"Data" help:"Number of connections to PostgreSQL (default: 8)."`
	DefaultTenant parley.TenantID `var:"PARLEY_DEFAULT_TENANT" default:"default" group:"Data" help:"Tenant of the agents from files, and of the user in local mode."`
	ServerKey     Secret          `var:"PARLEY_SERVER_KEY" placeholder:"TEXT" group:"Data" help:"Key of the server, at least 32 bytes; it signs the audit log and seals secrets. Default: a key that is made and kept in the data folder."`
	MasterKey     Secret          `var:"PARLEY_MASTER_KEY" placeholder:"HEX" group:"Data" help:"Master key that encrypts stored secrets: 32 bytes in hexadecimal. Several are separated by commas; the first one encrypts, the others are being replaced (docs/secrets.md). Default: none."`
	MasterKeyFile string          `var:"PARLEY_MASTER_KEY_FILE" type:"path" placeholder:"FILE" group:"Data" help:"File with the master keys, one on each line, in place of --master-key."`
	Config        string          `var:"PARLEY_CONFIG" type:"path" placeholder:"FILE" group:"Configuration file" help:"YAML file with settings, named like the flags of parley serve, and MCP servers."`
}

// Settings contains all settings of a server. Check validates them.
type Settings struct {
	Store
	New         bool          `var:"PARLEY_NEW" default:"false" group:"Data" help:"Make an empty database although the data folder holds the key of an earlier one. An existing database stays as it is."`
	Listen      string        `var:"PARLEY_LISTEN" default:"127.0.0.1:8080" group:"Address" help:"Address to serve on. With --auth local it must be a loopback address."`
	Advertise   string        `var:"PARLEY_ADVERTISE" placeholder:"ADDRESS" group:"Several nodes" help:"Address under which GET /api/v1/nodes lists this server, where several share a database (default: the address it listens on)."`
	Workspace   string        `var:"PARLEY_WORKSPACE" default:"." type:"path" group:"Agents and files" help:"Folder the agents work in."`
	Project     []string      `var:"PARLEY_PROJECTS" sep:"none" placeholder:"DIR" group:"Agents and files" help:"Another folder that agents work in, with agents and skills of its own. May be repeated; the variable has several, separated like PATH; a file lists them under projects (docs/projects.md)."`
	Agents      string        `var:"PARLEY_AGENTS" type:"path" placeholder:"DIR" group:"Agents and files" help:"Folder with one Markdown file per agent (default: agents in the workspace)."`
	Skills      string        `var:"PARLEY_SKILLS" type:"path" placeholder:"DIR" group:"Agents and files" help:"Folder with one folder per skill, in addition to skills and .parley/skills in the workspace."`
	LogLevel    LogLevel      `var:"PARLEY_LOG_LEVEL,LOG_LEVEL" default:"info" group:"Logs, metrics and shutdown" help:"Lowest level to log: debug, info, warn or error."`
	Drain       time.Duration `var:"PARLEY_DRAIN" default:"5s" group:"Logs, metrics and shutdown" help:"How long the server waits for runs at shutdown. A run that is cut continues after the next start."`
	Idle        time.Duration `var:"PARLEY_IDLE" default:"1m" group:"Limits" help:"How long an idle session stays in memory."`
	KeepPieces  time.Duration `var:"PARLEY_KEEP_PIECES" default:"0s" placeholder:"DURATION" group:"Data" help:"How long to keep the streamed chunks of finished answers, such as 720h (default: forever). The answers themselves stay."`
	Sentinel    string        `var:"PARLEY_SENTINEL" default:"block" enum:"block,flag,off" group:"Prompt injection" help:"Action on prompt-injection attempts: block, flag (later calls with effects ask a person) or off."`
	Classifier  string        `var:"PARLEY_CLASSIFIER" placeholder:"MODEL" group:"Prompt injection" help:"Model that checks every message for prompt injection before the agent's model gets it (default: none)."`
	NATSURL     SecretURL     `name:"nats-url" var:"PARLEY_NATS_URL" placeholder:"URL" group:"Several nodes" help:"NATS server that carries messages between the nodes of one database, such as nats://user:password@host:4222. Several servers of one NATS cluster are separated by commas (default: the nodes use PostgreSQL alone)."`
	AdminListen string        `var:"PARLEY_ADMIN_LISTEN" placeholder:"ADDRESS" group:"Logs, metrics and shutdown" help:"Loopback address to serve Go profiles on, under /debug/pprof (default: none)."`

	Models `group:"Models"`
	Access
	Autonomy    `group:"Autonomous agents"`
	IdlePrompts `group:"Autonomous agents"`
	Metrics     `group:"Logs, metrics and shutdown"`
	Webhook     `group:"Webhooks"`
	ToolServers []ToolServer `kong:"-"` // from the file, under mcp
	Projects    []Project    `kong:"-"` // the workspace, and those of --project or in the file
	Quotas      Quotas       `kong:"-"` // from the file
	ForACommand bool         `kong:"-"` // a command started the server for itself and will stop it
	Retention   Retention    `kong:"-"` // from the file and --keep-pieces
}

// Serve is Settings as a kong command, which validates them.
type Serve struct{ Settings }

// AfterApply is called by kong last, when the MCP servers and projects are known.
func (s *Serve) AfterApply(file fileSettings) error {
	if err := s.Settings.AfterApply(file); err != nil {
		return err
	}
	return errors.Join(s.validateProjects(), s.CheckToolServers())
}

// AfterApply is called by kong when every value is known and valid.
func (s *Settings) AfterApply(file fileSettings) error {
	s.ToolServers, s.Quotas, s.Retention = file.servers, file.quotas, file.retention
	s.Retention.All.Chunks = cmp.Or(s.Retention.All.Chunks, s.KeepPieces)
	if s.Agents == "" {
		s.Agents = s.agentsInWorkspace()
	}
	return s.settleProjects(file.projects)
}

func (s *Settings) agentsInWorkspace() string { return filepath.Join(s.Workspace, "agents") }

// A LogLevel is a slog.Leveler that is parsed from its name, in any case.
type LogLevel slog.Level

func (l LogLevel) Level() slog.Level { return slog.Level(l) }

// UnmarshalText accepts fewer forms than slog, which also accepts INFO+2.
func (l *LogLevel) UnmarshalText(text []byte) error {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	level, ok := levels[strings.ToLower(string(text))]
	if !ok {
		return fmt.Errorf("%q is no log level; use debug, info, warn or error", text)
	}
	*l = LogLevel(level)
	return nil
}
