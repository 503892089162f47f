package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/port"
)

// Options select the scenarios, their targets and their sizes.
type Options struct {
	Scenarios   []string // names; "all" means every scenario
	Server      string   // host:port of a running server; empty: start one per scenario
	Token       string   // for that server
	ModelListen string   // address of the mock model; empty: a free port
	Peers       []string // names of other servers to measure as well
	PeerFolder  string   // folder with the scripts that start peers
	Repeat      int
	N           int     // number of connections or sessions; 0: the scenario's
	Rate        float64 // per second; 0: the scenario's
	Transport   string  // ws or sse
	Short       bool    // small numbers, to check correctness and not speed
	Folder      string  // folder for data; empty: the folder for temporary files
	Store       string  // sqlite or postgres
	Postgres    string  // URL of a database, for that store and for comparing appends
	NATS        string  // URL of a NATS server, for the scenario nodes
	Program     string  // path of the program parley
	Version     string

	// Open opens the store in a data folder or a database. It is used to fill the store before a server starts, and to
	// measure appends.
	Open     func(ctx context.Context, data, database string) (port.Store, error)
	Progress io.Writer
}

// A bench is the state that all scenarios share.
type bench struct {
	o     Options
	pace  *pacer
	loop  *loop
	model *Model
	http  *http.Client
	temp  string
}

// A trial is one run of a scenario, for one target in one repeat.
type trial struct {
	*bench
	ctx    context.Context
	r      *Result
	server *process
	peer   *peer // nil: the target is Parley
	procs  []*process

	wg  sync.WaitGroup // requests that no other code waits for
	hub eventHub       // of a peer

	database  string   // URL of the current database of this trial; empty: SQLite
	databases []string // names of all databases that it created

	began    processors
	selfFrom time.Duration
	groupCPU time.Duration // of the processes of a peer that have ended
	ended    time.Duration // CPU time of the bench's ended child processes before the trial
	services time.Duration // CPU time of the database and the bus before the trial
}

// Run runs the scenarios and returns a report. If ctx ends, the report contains the results so far.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	chosen, err := choose(o.Scenarios)
	if err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	b := &bench{o: o, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
	if b.temp, err = os.MkdirTemp(o.Folder, "parley-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.temp)) }()
	if b.pace, err = newPacer(); err != nil {
		return nil, err
	}
	defer b.pace.close()
	if b.loop, err = newLoop(); err != nil {
		return nil, err
	}
	defer b.loop.close()
	if b.model, err = newModel(cmp.Or(o.ModelListen, "127.0.0.1:0"), b.pace); err != nil {
		return nil, err
	}
	defer b.model.close()
	defer b.http.CloseIdleConnections()
	peers, missing, err := findPeers(ctx, o.PeerFolder, o.Peers)
	if err != nil {
		return nil, err
	}
	report := newReport(o, missing)
	for repeat := 1; repeat <= max(o.Repeat, 1) && ctx.Err() == nil; repeat++ {
		raw, err := measureRaw(b.temp, o.Short)
		if err != nil {
			return report, err
		}
		for _, s := range chosen {
			for _, target := range targets(s, peers) {
				if ctx.Err() != nil {
					break
				}
				report.Results = append(report.Results, b.try(ctx, s, target, repeat, raw))
			}
		}
	}
	return report, nil
}

// targets returns Parley and the peers that support a scenario, in random
// order.
func targets(s scenario, peers []*peer) []*peer {
	list := []*peer{nil}
	for _, p := range peers {
		if slices.Contains(p.Can, s.name) {
			list = append(list, p)
		}
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func choose(names []string) ([]scenario, error) {
	var list []scenario
	for _, name := range names {
		if name == "all" {
			continue
		}
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(Names(), ", "))
		}
		list = append(list, scenarios[i])
	}
	switch {
	case slices.Contains(names, "all"):
		return scenarios, nil
	case len(list) == 0:
		return nil, errors.New("no scenario is named; name some, or all")
	}
	return list, nil
}

// Names lists the names of the scenarios.
func Names() (list []string) {
	for _, s := range scenarios {
		list = append(list, s.name)
	}
	return list
}

// try runs one scenario. If it fails, the result contains the reason and no figures.
func (b *bench) try(ctx context.Context, s scenario, target *peer, repeat int, raw Raw) *Result {
	r := &Result{Scenario: s.name, Target: parleyTarget, Repeat: repeat, Raw: raw, Values: map[string]float64{}}
	if target != nil {
		r.Target = target.Name
	}
	begun := time.Now()
	fmt.Fprintf(b.o.Progress, "repeat %d, %s, %s …", repeat, s.name, r.Target)
	if b.o.Server != "" && !s.anyServer {
		r.Missing = "it needs a server of its own; leave out --server"
		fmt.Fprintf(b.o.Progress, " %s\n", r.Missing)
		return r
	}
	b.model.forget()
	limited, cancel := context.WithTimeout(ctx, b.limit())
	defer cancel()
	t := &trial{bench: b, ctx: limited, r: r, peer: target}
	t.startLoad()
	err := t.fresh()
	if err == nil {
		err = s.run(t)
	}
	t.stopServers()
	t.wg.Wait()
	t.stopLoad()
	err = errors.Join(err, t.dropDatabases())
	r.Seconds = time.Since(begun).Seconds()
	switch {
	case ctx.Err() != nil:
		r.Missing, r.Values, r.Curves = "it was interrupted", nil, nil
	case err != nil:
		r.Problem, r.Values, r.Curves = err.Error(), nil, nil
	}
	fmt.Fprintf(b.o.Progress, " %.1f s%s\n", r.Seconds, r.remark())
	return r
}

// limit is the time limit of one scenario.
func (b *bench) limit() time.Duration {
	if b.o.Short {
		return time.Minute
	}
	return 10 * time.Minute
}

var readyLine = regexp.MustCompile(`msg="parley is ready" address=http://(\S+)`)

// dir creates a new data folder.
func (t *trial) dir() (string, error) { return os.MkdirTemp(t.temp, t.r.Scenario+"-") }

// start starts a Parley server with a new data folder, or uses the one that
// --server names. env contains additional variables.
func (t *trial) start(env ...string) error {
	if t.peer != nil {
		return t.startPeer()
	}
	if t.o.Server != "" {
		t.server = &process{address: t.o.Server}
		return nil
	}
	data, err := t.dir()
	if err != nil {
		return err
	}
	return t.startOn(data, "127.0.0.1:0", env...)
}

const agentFile = "---\nname: bench\ntools: []\n---\nAnswer.\n"

const timerAgent = "---\nname: later\ntools: [schedule_follow_up]\nautonomy: {enabled: true, max_consecutive: 10, " +
	"cooldown_ms: 0, max_follow_ups: 10}\n---\nAnswer.\n"

// startOn starts a server with an existing data folder.
func (t *trial) startOn(data, listen string, env ...string) error {
	space := data + "-workspace"
	if err := os.MkdirAll(filepath.Join(space, "agents"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"bench.md": agentFile, "later.md": timerAgent} {
		if err := os.WriteFile(filepath.Join(space, "agents", name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	cmd := exec.Command(t.o.Program, "serve", "--listen", listen, "--data", data, "--workspace", space, "--drain",
		"100ms")
	cmd.Dir, cmd.Env = space, append(t.childEnv(data), env...)
	p, err := launch(t.ctx, cmd, readyLine)
	if err != nil {
		return err
	}
	t.server = p
	t.procs = append(t.procs, p)
	return nil
}

// childEnv returns the variables of a server. It contains only PATH from the caller's environment.
func (t *trial) childEnv(home string) []string {
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PROVIDER=openai", "MODEL=bench",
		"OPENAI_API_KEY=bench", "OPENAI_BASE_URL=" + t.model.URL(), "LOG_LEVEL=info", "AUTONOMY_ENABLED=true",
		"AUTONOMY_COOLDOWN_MS=0"}
	if t.database != "" {
		env = append(env, "PARLEY_DATABASE_URL="+t.database)
	}
	return env
}

// stopServers stops the servers. It adds up the CPU time of a peer's processes, because scripts do not wait for those
// that they start.
func (t *trial) stopServers() {
	for _, p := range t.procs {
		if t.peer != nil {
			t.groupCPU += usageOfGroup(p.cmd.Process.Pid).cpu
		}
		p.stop()
	}
	t.procs = nil
}

// usage returns the resource usage of the server under test. It is zero for a
// server that the bench did not start.
func (t *trial) usage() procUsage {
	if t.server == nil || t.server.cmd == nil {
		return procUsage{}
	}
	if t.peer != nil {
		return usageOfGroup(t.server.cmd.Process.Pid)
	}
	u, _ := usageOf(t.server.cmd.Process.Pid) // if the process has ended, the scenario fails anyway
	return u
}

// record adds a figure to the result.
func (t *trial) record(name string, value float64) { t.r.Values[name] = value }

// point adds a point to a curve of the result.
func (t *trial) point(curve string, x, y float64) {
	if t.r.Curves == nil {
		t.r.Curves = map[string][]Point{}
	}
	t.r.Curves[curve] = append(t.r.Curves[curve], Point{x, y})
}

// latency adds two quantiles to the result. It marks them as invalid if the load
// generator was late by more than a fifth of them.
func (t *trial) latency(name string, h, lag *histogram) {
	t.record(name+"_p50_ms", h.ms(0.5))
	t.record(name+"_p99_ms", h.ms(0.99))
	if lag == nil || lag.count() == 0 {
		return
	}
	t.record(name+"_lag_p50_ms", lag.ms(0.5))
	t.record(name+"_lag_p99_ms", lag.ms(0.99))
	if lag.quantile(0.99) > h.quantile(0.99)/5 {
		t.r.Invalid = append(t.r.Invalid, fmt.Sprintf("%s: the load generator was late (p99 %.2f ms of %.2f ms)", name,
			lag.ms(0.99), h.ms(0.99)))
	}
}

// pick returns full, or short in a short run.
func (t *trial) pick(full, short int) int {
	if t.o.Short {
		return short
	}
	return full
}

// size returns --n if it is given, else pick.
func (t *trial) size(full, short int) int {
	if t.o.N > 0 {
		return t.o.N
	}
	return t.pick(full, short)
}

// rate returns --rate if it is given, else full or short.
func (t *trial) rate(full, short float64) float64 {
	switch {
	case t.o.Rate > 0:
		return t.o.Rate
	case t.o.Short:
		return short
	}
	return full
}

// serviceCPU returns the CPU time of the database and the bus, which are part of the measured system.
func (t *trial) serviceCPU() (sum time.Duration) {
	if t.o.Postgres != "" {
		sum += cpuOfProgram("postgres")
	}
	if t.o.NATS != "" {
		sum += cpuOfProgram("nats-server")
	}
	return sum
}

// startLoad and stopLoad measure the load by other processes on the machine.
func (t *trial) startLoad() {
	t.began = readProcessors()
	u, _ := usageOf(os.Getpid())
	t.selfFrom, t.services, t.ended = u.cpu, t.serviceCPU(), cpuOfEnded()
	t.r.Load = loadAverage()
}

func (t *trial) stopLoad() {
	now := readProcessors()
	u, _ := usageOf(os.Getpid())
	total := now.total - t.began.total
	if total <= 0 {
		return
	}
	children := t.groupCPU
	if t.peer == nil { // also servers that were killed, and parley import
		children = cpuOfEnded() - t.ended
	}
	foreign := now.busy - t.began.busy - (u.cpu - t.selfFrom) - children - (t.serviceCPU() - t.services)
	t.r.Foreign = max(0, float64(foreign)/float64(total))
	t.r.Steal = float64(now.steal-t.began.steal) / float64(total)
	t.r.Busy = t.r.Foreign > 0.1 || t.r.Steal > 0.05
}
