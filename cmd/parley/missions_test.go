package main

import (
	"strings"
	"testing"
)

// TestMissionsOfAProjectThatIsGone removes a project from the server. Its missions can still be listed and cleared, and
// the answers say that the project is gone.
func TestMissionsOfAProjectThatIsGone(t *testing.T) {
	t.Parallel()
	data, stays, goes := t.TempDir(), t.TempDir(), t.TempDir()
	flags := []string{"--listen", "127.0.0.1:0", "--data", data, "--workspace", stays, "--drain", "1ms"}
	addr, stop := serve(t, append(flags, "--project", goes)...)
	for project, text := range map[string]string{stays: "stay green", goes: "go green"} {
		if status, body := ask(t, "POST", addr+"/api/v1/missions", `{"project":"`+project+`","text":"`+text+`"}`); status !=
			201 {
			t.Fatalf("%d %s", status, body)
		}
	}
	stop()
	addr, stop = serve(t, flags...)
	defer stop()
	list := inProcess(t, "", "missions", "--server", addr)
	for _, row := range []string{"active", "project gone"} {
		if !strings.Contains(list, row) {
			t.Errorf("the list has no row with %q:\n%s", row, list)
		}
	}
	gone := get(t, addr+"/api/v1/missions?project="+goes)
	if !strings.Contains(gone, `"project_gone":true`) ||
		!strings.Contains(gone, "The project "+goes+" is gone: this server does not have it") {
		t.Errorf("the missions of the project are %s", gone)
	}
	if all := get(t, addr+"/api/v1/missions?project=*"); strings.Count(all, `"text":`) != 2 {
		t.Errorf("the missions of all projects are %s", all)
	}
	for method, path := range map[string]string{"GET": goes + "2", "DELETE": goes + "2", "POST": goes} {
		status, body := ask(t, method, addr+"/api/v1/missions?project="+path, `{"text":"x"}`)
		if status != 400 || !strings.Contains(body, "there are: "+stays) {
			t.Errorf("%s %s: %d %s", method, path, status, body)
		}
	}
	if status, body := ask(t, "DELETE", addr+"/api/v1/missions?project=*", ""); status != 400 {
		t.Errorf("the missions of all projects are cleared at once: %d %s", status, body)
	}
	cleared := inProcess(t, "", "missions", "clear", "--server", addr, "--project", goes)
	if want := "Cleared the mission of " + goes + ", which the server does not have any more: go green\n"; cleared != want {
		t.Errorf("printed %q", cleared)
	}
	if again := inProcess(t, "", "missions", "clear", "--server", addr, "--project", goes); again !=
		"No mission is active there.\n" {
		t.Errorf("the second time it printed %q", again)
	}
	list = inProcess(t, "", "missions", "--server", addr)
	if strings.Contains(list, "project gone") || !strings.Contains(list, "ended") || !strings.Contains(list, "active") {
		t.Errorf("at the end the list is\n%s", list)
	}
}
