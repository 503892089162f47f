package parley

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write samples of events that have none")

// TestStoredEvents checks that this release reads and folds a sample of every
// (type, version) that was ever released. A sample is never changed.
func TestStoredEvents(t *testing.T) {
	kept := map[string]bool{}
	for name, bt := range bodyTypes {
		for version := 1; version <= bt.version; version++ {
			file := filepath.Join("testdata", "events", fmt.Sprintf("%s.v%d.json", name, version))
			kept[file] = true
			raw, err := os.ReadFile(file)
			if os.IsNotExist(err) && *update && version == bt.version {
				raw = sample(t, bt)
				if err := os.WriteFile(file, raw, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Errorf("%v (go test -run StoredEvents -update writes it)", err)
				continue
			}
			body, err := DecodeBody(name, version, raw)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			Fold(NewState("acme", "s"), Event{Seq: 1, Body: body})
			if version < bt.version {
				continue
			}
			again, _, encoded, err := EncodeBody(body)
			if err != nil || again != name || string(encoded) != strings.TrimSpace(string(raw)) {
				t.Errorf("%s is stored as\n%s\nand the sample is\n%s", name, encoded, raw)
			}
		}
	}
	files, err := filepath.Glob("testdata/events/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !kept[file] {
			t.Errorf("%s is a sample of an event this release does not know: logs that have it could not be read", file)
		}
	}
}

// sample fills every field of a body, so that a renamed or dropped field is
// detected.
func sample(t *testing.T, bt bodyType) []byte {
	body, err := bt.decode([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.New(reflect.TypeOf(body)).Elem()
	fill(v)
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, '\n')
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

func TestUnknownEventsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		version int
		raw     string
	}{
		{"Nonsense", 1, `{}`}, {"RunStarted", 0, `{}`}, {"RunStarted", 2, `{}`}, {"RunStarted", 1, `[`},
		{"RunStarted", 1, `{"input":"x"}`},
	} {
		if _, err := DecodeBody(c.name, c.version, []byte(c.raw)); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestUpcasting(t *testing.T) {
	old := bodyTypes["SessionRenamed"]
	defer func() { bodyTypes["SessionRenamed"] = old }()
	two := old
	two.version = 3
	two.upcast = map[int]func(json.RawMessage) (json.RawMessage, error){
		1: func(raw json.RawMessage) (json.RawMessage, error) {
			return []byte(strings.Replace(string(raw), "name", "label", 1)), nil
		},
		2: func(raw json.RawMessage) (json.RawMessage, error) {
			return []byte(strings.Replace(string(raw), "label", "title", 1)), nil
		},
	}
	bodyTypes["SessionRenamed"] = two
	for version, raw := range map[int]string{1: `{"name":"x"}`, 2: `{"label":"x"}`, 3: `{"title":"x"}`} {
		if body, err := DecodeBody("SessionRenamed", version, []byte(raw)); err != nil ||
			body != (SessionRenamed{Title: "x"}) {
			t.Errorf("version %d: %+v, %v", version, body, err)
		}
	}
}

func TestLogLine(t *testing.T) {
	e := Event{Session: "s", Seq: 3, Position: 9, Root: "r", At: time.Date(2026, 3, 1, 9, 0, 0, 1000, time.UTC), Run: 2,
		By: "ann", Body: RunFinished{Outcome: Completed}}
	raw, err := json.Marshal(e)
	const want = `{"session":"s","seq":3,"position":9,"root":"r","at":"2026-03-01T09:00:00.000001Z","run":2,"by":"ann","type":"RunFinished","body":{"outcome":"completed","usage":{}}}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v; want %s", raw, err, want)
	}
	var back Event
	if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%+v, %v", back, err)
	}
}
