package screen

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestQualityOfRedaction: Parley's own rules redact at least 95 % of the
// secrets that the 200 gitleaks rules describe.
func TestQualityOfRedaction(t *testing.T) {
	rd := NewRedactor()
	for _, wild := range []bool{false, true} {
		m := maker{rand.New(rand.NewPCG(11, 13)), wild}
		made, hidden, whole, near, altered := 0, 0, 0, 0, 0
		var missed []string
		for _, rule := range foreignRules(t) {
			n, ok, miss := 0, 0, ""
			for range 10 {
				text, secret := m.sample(rule)
				if text == "" {
					continue
				}
				n++
				out, _ := rd.Redact(text)
				if !strings.Contains(out, secret) {
					ok++
				} else {
					miss = text
				}
				nearly := nearMiss(text)
				near++
				if out, _ := rd.Redact(nearly); out != nearly {
					altered++
				}
			}
			if ok < n {
				missed = append(missed, fmt.Sprintf("%d of %d of %s, as %.120q", n-ok, n, rule.id, miss))
			}
			made += n
			hidden += ok
			if n > 0 && ok*2 > n {
				whole++
			}
		}
		t.Logf("wild %v: %d of %d samples redacted, %.1f %%; of %d rules most samples; near misses altered: %d of %d",
			wild, hidden, made, percent(hidden, made), whole, altered, near)
		for _, s := range missed {
			t.Log("missed ", s)
		}
		if got := percent(hidden, made); got < 95 {
			t.Errorf("%.1f %% of the samples are redacted, less than 95", got)
		}
		if got := percent(altered, near); got > 5 {
			t.Errorf("%.1f %% of near misses are altered", got)
		}
	}
}

var longRun = regexp.MustCompile(`[A-Za-z0-9+/=_~-]{8,}`)

// nearMiss returns a text in which only the beginnings of the secrets are left.
func nearMiss(text string) string {
	return longRun.ReplaceAllStringFunc(text, func(s string) string { return s[:4] })
}

// TestQualityOfRedactionOnHonestLines: less than 1 % of the lines of honest
// texts are changed.
func TestQualityOfRedactionOnHonestLines(t *testing.T) {
	rd := NewRedactor("an-own-secret-of-the-server")
	sets := map[string][]string{}
	for _, s := range samples(t) {
		if s.Label == "benign" {
			sets["prompts: "+s.Set] = append(sets["prompts: "+s.Set], strings.Split(s.Text, "\n")...)
		}
	}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(name); !d.IsDir() && (ext == ".go" || ext == ".md" || ext == ".mod" || ext == ".sum" ||
			ext == ".json") {
			raw, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			sets["this repository: "+ext] = append(sets["this repository: "+ext], strings.Split(string(raw), "\n")...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		raw := make([]byte, 57)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		h := hex.EncodeToString(raw)
		uuid := h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
		sets["uuids"] = append(sets["uuids"], uuid, "id: "+uuid, `{"session_id":"`+uuid+`","run":"`+uuid+`.17"}`,
			"GET /api/v1/sessions/"+uuid)
		sets["git"] = append(sets["git"], h[:40], "commit "+h[:40], h[:7]+" fix the parser",
			"index "+h[:7]+".."+h[7:14]+" 100644", "refs/heads/main "+h[:40],
			h[:40]+" refs/tags/v1.2.3", "Merge: "+h[:7]+" "+h[7:14], "  \"sha\": \""+h[:40]+"\",")
		sets["digests"] = append(sets["digests"], "sha256:"+h[:64], h[:64]+"  parley.tar.gz",
			"golang.org/x/text v0.41.0 h1:"+base64.StdEncoding.EncodeToString(raw[:32]),
			`"integrity": "sha512-`+base64.StdEncoding.EncodeToString(raw)+`=="`, "image: alpine@sha256:"+h[:64],
			"ETag: \""+h[:32]+"\"", "traceparent: 00-"+h[:32]+"-"+h[32:48]+"-01")
		sets["images"] = append(sets["images"], base64.StdEncoding.EncodeToString(raw),
			"<img src=\"data:image/png;base64,"+base64.StdEncoding.EncodeToString(raw)+"\">",
			"background: url(data:image/gif;base64,"+base64.StdEncoding.EncodeToString(raw)+")")
	}
	for _, name := range sorted(sets) {
		lines, altered := 0, 0
		var some []string
		for _, line := range sets[name] {
			if strings.TrimSpace(line) == "" {
				continue
			}
			lines++
			if out, found := rd.Redact(line); len(found) > 0 {
				altered++
				if len(some) < 12 {
					some = append(some, out)
				}
			} else if out != line {
				t.Fatalf("%q became %q with nothing found", line, out)
			}
		}
		t.Logf("%-28s %6d lines, %3d altered, %.2f %%", name, lines, altered, percent(altered, lines))
		for _, s := range some {
			t.Logf("    %.160q", s)
		}
		if percent(altered, lines) >= 1 {
			t.Errorf("%s: %.2f %% of honest lines are altered", name, percent(altered, lines))
		}
	}
}
