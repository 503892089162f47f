package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"parley"
	"parley/config"
	"parley/port"
)

// TestImportCancelsPendingWebhooks checks that the importing server cancels the
// pending webhooks of a session, and that the exporting one still delivers them.
func TestImportCancelsPendingWebhooks(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	for from, other := range map[string]string{"sqlite": "postgres", "postgres": "sqlite"} {
		t.Run("from "+from, func(t *testing.T) {
			here, there := kinds[from](t), kinds[other](t)
			var export string
			var id parley.SessionID
			served(t, append(here, "--webhook-allow", "127.0.0.0/8"), func(addr, _ string) {
				c := open(t, addr)
				id = parley.SessionID(c.session)
				r, err := http.NewRequest("PUT", addr+"/api/v1/sessions/"+c.session+"/webhook",
					strings.NewReader(fmt.Sprintf(`{"url":"http://%s/"}`, nobody)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				res, err := plainHTTP.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				c.say("say hello")
				c.until("EffectEnqueued", 1)
				export = mustRun(t, "", with(here, "export", c.session)...)
			})
			if strings.Contains(export, "whsec_") || strings.Contains(export, "http://"+nobody) {
				t.Errorf("the export has the url or the secret:\n%s", export)
			}
			mustRun(t, export, with(there, "import")...)
			for what, store := range map[string][]string{"pending": here, "cancelled imported": there} {
				list, err := reading(t, store).Tenant("default").Effects(context.Background(),
					port.EffectQuery{Session: id, Limit: 10})
				if err != nil || len(list) != 1 || !strings.HasPrefix(string(list[0].Status)+" "+list[0].Why, what) {
					t.Errorf("%+v, %v; want %s", list, err, what)
				}
			}
		})
	}
}

// TestAgentWebhooksAreChecked checks that an agent whose webhook cannot be
// delivered is rejected, with advice for the operator.
func TestAgentWebhooksAreChecked(t *testing.T) {
	t.Parallel()
	secret := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	for _, test := range []struct{ url, secret, want string }{
		{"https://hooks.example.com/x", secret, ""},
		{"https://hooks.example.com/x", "", "HOOK, which is not set"},
		{"https://hooks.example.com/x", "hunter2", "HOOK holds no secret"},
		{"http://hooks.example.com/x", secret, "needs an https address"},
		{"https://169.254.169.254/x", secret, "private addresses"},
		{"https://a:b@hooks.example.com/x", secret, "no name and password"},
	} {
		h, err := newHookRules(&config.Settings{}, func(name string) (string, bool) {
			return test.secret,
				name == "HOOK"
		})
		if err != nil {
			t.Fatal(err)
		}
		err = h.check(parley.Agent{Name: "coder", Webhook: &parley.AgentWebhook{URL: test.url, SecretEnv: "HOOK"}})
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) || err != nil &&
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
