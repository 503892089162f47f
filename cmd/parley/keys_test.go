package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley/store/rules"
	"parley/store/storetest"
)

// webhookOf sets the webhook of a session if an address is given. It returns the address that the server shows.
func webhookOf(t *testing.T, addr, session, to string) string {
	t.Helper()
	method, body := "GET", ""
	if to != "" {
		method, body = "PUT", `{"url":"`+to+`"}`
	}
	r, err := http.NewRequest(method, addr+"/api/v1/sessions/"+session+"/webhook", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := plainHTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	var got struct{ URL string }
	if err != nil || res.StatusCode != http.StatusOK || json.Unmarshal(raw, &got) != nil {
		t.Fatalf("%s of a webhook: %s %s, %v", method, res.Status, raw, err)
	}
	return got.URL
}

// filesWith lists the files below a folder that contain a text.
func filesWith(t *testing.T, folder, text string) (list []string) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // PostgreSQL has removed the file meanwhile
		}
		if raw, err := os.ReadFile(name); err == nil && bytes.Contains(raw, []byte(text)) {
			list = append(list, name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestMasterKeys: with a master key, the server encrypts both existing and new secrets. Without the key it does not
// start, and the error names the key. The key can be rotated.
func TestMasterKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		const early, later = "https://a.example/early-word-71c", "https://a.example/later-word-52d"
		k1, k2 := storetest.MasterKey(1), storetest.MasterKey(2)
		vault, err := rules.NewVault(k1, k2)
		if err != nil {
			t.Fatal(err)
		}
		id1, id2 := vault.Keys()[0], vault.Keys()[1]
		under := func(keys string) []string { return slices.Concat(store, []string{"--master-key", keys}) }
		refuses := func(with []string, id string) {
			t.Helper()
			args := slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, with)
			refused(t, "encrypted with the master key "+id, "", args...)
		}
		var first, second string
		served(t, store, func(addr, _ string) {
			first = open(t, addr).session
			webhookOf(t, addr, first, early)
		})
		server, err := os.ReadFile(filepath.Join(store[1], keyName))
		if err != nil {
			t.Fatal(err)
		}
		word := strings.TrimSpace(string(server))
		if len(store) == 2 && len(filesWith(t, store[1], "early-word-71c")) == 0 {
			t.Error("the address is not where the test looks for it")
		}
		served(t, under(k1), func(addr, _ string) {
			second = open(t, addr).session
			webhookOf(t, addr, second, later)
			if got := webhookOf(t, addr, first, ""); got != early {
				t.Errorf("the webhook that was stored before is %q", got)
			}
			for _, text := range []string{word, "early-word-71c", "later-word-52d"} {
				if files := filesWith(t, store[1], text); len(files) > 0 {
					t.Errorf("%s are in clear in %s", text, files)
				}
			}
		})
		if len(store) == 4 {
			postgresKeeps(t, store[3], "later-word-52d")
		}
		for _, text := range []string{word, "early-word-71c", "later-word-52d"} {
			if files := filesWith(t, store[1], text); len(files) > 0 {
				t.Errorf("%s are in clear in %s", text, files)
			}
		}
		refuses(store, id1)
		refuses(under(k2), id1)
		refused(t, id1, "", with(store, "audit", "verify")...)
		if found, err := examined(t, store...); err == nil || found["master key"].Status != problem ||
			!strings.Contains(found["master key"].Message, id1) {
			t.Errorf("the doctor says %+v, %v", found["master key"], err)
		}
		if found, _ := examined(t, under(k1)...); found["master key"].Status != fine {
			t.Errorf("with the key the doctor says %+v", found["master key"])
		}
		mustRun(t, "", slices.Concat([]string{"audit", "verify"}, under(k1))...)

		// During a rotation the server needs both keys.
		if out := mustRun(t, "", slices.Concat([]string{"keys", "list"}, under(k2))...); !strings.Contains(out,
			id1+"  missing, needed") || !strings.Contains(out, id2+"  given, encrypts, not needed") {
			t.Errorf("keys list says\n%s", out)
		}
		refused(t, "No master key is given", "", with(store, "keys", "rotate")...)
		refused(t, id1, "", slices.Concat([]string{"keys", "rotate"}, under(k2))...)
		for range 2 {
			out := mustRun(t, "", slices.Concat([]string{"keys", "rotate"}, under(k2+","+k1))...)
			if !strings.Contains(out, "with the master key "+id2) {
				t.Errorf("keys rotate says\n%s", out)
			}
		}
		refuses(under(k1), id2)
		served(t, under(k2), func(addr, _ string) {
			if a, b := webhookOf(t, addr, first, ""), webhookOf(t, addr, second, ""); a != early || b != later {
				t.Errorf("the webhooks are %q and %q", a, b)
			}
		})
		mustRun(t, "", slices.Concat([]string{"audit", "verify"}, under(k2))...)
	})
}

// postgresKeeps searches all files of a database server for a text that must never be stored in clear.
func postgresKeeps(t *testing.T, address, text string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `CHECKPOINT`); err != nil {
		t.Fatal(err)
	}
	var folder string
	if err := conn.QueryRow(ctx, `SHOW data_directory`).Scan(&folder); err != nil {
		t.Fatal(err)
	}
	if at, err := url.Parse(address); err != nil || len(filesWith(t, folder, strings.TrimPrefix(at.Path, "/"))) == 0 {
		t.Errorf("the name of the database is not in the files, so they are not where the test looks (%v)", err)
	}
	if files := filesWith(t, folder, text); len(files) > 0 {
		t.Errorf("%s is in clear in %s", text, files)
	}
}
