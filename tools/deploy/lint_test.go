// Package deploy checks the chart and the compose files with the libraries of Helm and of Docker Compose. It is in a
// separate module, so that the server does not depend on them.
package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"
)

const (
	folder = "../../deploy/"
	chart  = folder + "helm/parley"
	secret = "0123456789abcdef0123456789abcdef"
)

type values = map[string]any

var (
	one   = values{"jwtSecret": secret}
	three = values{"jwtSecret": secret, "serverKey": secret, "masterKey": secret + secret, "replicaCount": 3, "publicURL": "https://parley.example.com/",
		"trustedProxies": "10.0.0.0/8", "env": values{"PARLEY_LOG_LEVEL": "debug"},
		"database": values{"url": "postgres://parley@db/parley"}, "nats": values{"url": "nats://nats:4222"},
		"ingress": values{"enabled": true, "tlsSecret": "parley-tls"}, "networkPolicy": values{"enabled": true},
		"metrics": values{"enabled": true, "token": secret}, "models": values{"anthropicKey": "key"}}
)

func TestTheChartPassesHelmsLint(t *testing.T) {
	for _, v := range []values{one, three} {
		linter := lint.All(chart, v, "default", false)
		for _, m := range linter.Messages {
			if m.Severity >= support.WarningSev {
				t.Error(m)
			}
		}
	}
}

// render returns the output of helm template, by kind and name.
func render(t *testing.T, v values) (map[string]values, error) {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "parley", Namespace: "default",
		IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	found := map[string]values{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
			var object values
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(object) > 0 {
				found[fmt.Sprint(object["kind"], " ", at(object, "metadata", "name"))] = object
			}
		}
	}
	return found, nil
}

// at returns the value at a path of field names and list indices.
func at(v any, path ...any) any {
	for _, p := range path {
		switch x := v.(type) {
		case values:
			v = x[p.(string)]
		case []any:
			v = x[p.(int)]
		default:
			return nil
		}
	}
	return v
}

func TestRenderedManifests(t *testing.T) {
	services := []string{"Secret parley", "Service parley", "Service parley-nodes", "StatefulSet parley"}
	for _, c := range []struct {
		name  string
		given values
		kinds []string
	}{
		{"one", one, services},
		{"three", three, append([]string{"Ingress parley", "NetworkPolicy parley", "PodDisruptionBudget parley"},
			services...)},
		{"a secret of its own", values{"existingSecret": "mine"}, services[1:]},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := render(t, c.given)
			if err != nil {
				t.Fatal(err)
			}
			if kinds := slices.Sorted(maps.Keys(found)); !slices.Equal(kinds, c.kinds) {
				t.Errorf("kinds: %q, want %q", kinds, c.kinds)
			}
			checkPod(t, at(found["StatefulSet parley"], "spec", "template", "spec"))
			checkVariables(t, found)
			if s, ok := found["Secret parley"]; ok && at(s, "stringData", "PARLEY_MASTER_KEY") != c.given["masterKey"] {
				t.Errorf("the master key is %v", at(s, "stringData", "PARLEY_MASTER_KEY"))
			}
		})
	}
}

func checkPod(t *testing.T, pod any) {
	t.Helper()
	for _, c := range []struct {
		path []any
		want any
	}{
		{[]any{"automountServiceAccountToken"}, false},
		{[]any{"securityContext", "runAsNonRoot"}, true},
		{[]any{"securityContext", "runAsUser"}, float64(10001)},
		{[]any{"securityContext", "seccompProfile", "type"}, "RuntimeDefault"},
		{[]any{"containers", 0, "securityContext", "readOnlyRootFilesystem"}, true},
		{[]any{"containers", 0, "securityContext", "allowPrivilegeEscalation"}, false},
		{[]any{"containers", 0, "securityContext", "capabilities", "drop", 0}, "ALL"},
		{[]any{"initContainers", 0, "securityContext", "readOnlyRootFilesystem"}, true},
		{[]any{"containers", 0, "livenessProbe", "httpGet", "path"}, "/healthz"},
		{[]any{"containers", 0, "startupProbe", "httpGet", "path"}, "/healthz"},
		{[]any{"containers", 0, "readinessProbe", "httpGet", "path"}, "/readyz"},
	} {
		if got := at(pod, c.path...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	mounts := map[string]bool{}
	for _, m := range at(pod, "containers", 0, "volumeMounts").([]any) {
		mounts[fmt.Sprint(at(m, "mountPath"))] = true
	}
	if !mounts["/data"] || !mounts["/tmp"] {
		t.Errorf("the root is read-only, and these are mounted: %v", mounts)
	}
}

// checkVariables checks that every variable is in the table of settings.
func checkVariables(t *testing.T, found map[string]values) {
	t.Helper()
	table, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range at(found["StatefulSet parley"], "spec", "template", "spec", "containers", 0, "env").([]any) {
		if name := fmt.Sprint(at(e, "name")); name != "POD_IP" {
			names = append(names, name)
		}
	}
	if s, ok := found["Secret parley"]; ok {
		names = append(names, slices.Collect(maps.Keys(at(s, "stringData").(values)))...)
	}
	for _, name := range names {
		if !bytes.Contains(table, []byte("`"+name+"`")) {
			t.Errorf("the chart sets %s, which docs/configuration.md does not have", name)
		}
	}
}

func TestTheChartRefusesWhatCannotWork(t *testing.T) {
	for want, v := range map[string]values{
		"set jwtSecret":                   {},
		"several nodes need PostgreSQL":   {"jwtSecret": secret, "replicaCount": 2},
		"several nodes need the same key": {"jwtSecret": secret, "replicaCount": 2, "database": values{"url": "postgres://db"}},
		"masterKey is 32 bytes":           {"jwtSecret": secret, "masterKey": secret},
		"metrics need a token":            {"jwtSecret": secret, "metrics": values{"enabled": true}},
	} {
		if _, err := render(t, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", v, err, want)
		}
	}
}

// TestComposeFiles loads the compose files like docker compose config, which checks them against the schema.
func TestComposeFiles(t *testing.T) {
	env := []string{"PARLEY_JWT_SECRET=" + secret}
	cluster := append(env, "PARLEY_SERVER_KEY="+secret, "PARLEY_DOMAIN=parley.example.com", "POSTGRES_PASSWORD=p",
		"NATS_PASSWORD=n")
	for _, c := range []struct {
		file  string
		env   []string
		nodes int
	}{{"compose.yaml", env, 1}, {"compose.cluster.yaml", cluster, 3}} {
		load := func(env []string) (int, error) {
			options, err := cli.NewProjectOptions([]string{folder + c.file}, cli.WithEnv(env), cli.WithResolvedPaths(true))
			if err != nil {
				return 0, err
			}
			project, err := options.LoadProject(t.Context())
			if err != nil {
				return 0, err
			}
			nodes := 0
			for _, s := range project.Services {
				if s.Build == nil {
					continue
				}
				nodes++
				if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
					!slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
					t.Errorf("%s: %s is not confined", c.file, s.Name)
				}
				if _, err := os.Stat(s.Build.Context + "/" + s.Build.Dockerfile); err != nil {
					t.Error(err)
				}
			}
			return nodes, nil
		}
		if nodes, err := load(c.env); err != nil || nodes != c.nodes {
			t.Errorf("%s: %d nodes, %v", c.file, nodes, err)
		}
		if _, err := load(nil); err == nil || !strings.Contains(err.Error(), "deploy/.env") {
			t.Errorf("%s without secrets: %v", c.file, err)
		}
	}
}
