package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/client"
	"parley/port"
)

// server compares the settings of this command with those of the running server, which may have been started with flags
// and variables that this terminal does not have.
func (d *doctor) server() {
	const name = "server"
	address := ""
	if _, at := serverOn(d.Data); at != "" {
		address = openAtText(at)
	} else if d.answers {
		address = "http://" + d.Listen
	}
	if address == "" || d.Check() != nil {
		return // port or settings reports why
	}
	token, _ := d.env("PARLEY_TOKEN")
	c, err := client.New(address, client.Options{Token: token})
	if err != nil {
		d.fail(name, err, "correct the address")
		return
	}
	defer c.Close()
	ctx, cancel := d.within(4 * time.Second)
	defer cancel()
	me, err := c.Me(ctx)
	refused, _ := errors.AsType[*client.Error](err)
	wantsToken := refused != nil && refused.Status == http.StatusUnauthorized
	switch {
	case wantsToken && d.Auth != "local":
		d.say(name, fine, "", "%s runs. Its settings were not compared with the settings here, because PARLEY_TOKEN "+
			"has no token that it accepts", address)
		return
	case wantsToken:
		me = client.Me{Auth: "jwt"}
	case err != nil:
		d.say(name, warning, "look at its log", "%s does not say how it was started: %v", address, err)
		return
	}
	models := newModels(d.Settings)
	defer models.Close()
	project := d.Projects[0].Root
	var differs []string
	if projects, err := c.Projects(ctx); err == nil {
		there := func(root string) bool {
			return slices.ContainsFunc(projects, func(p port.Project) bool { return p.Root == root })
		}
		if there(project) {
			me.Project = project // the server has several projects, and this one is not the first
		}
		for _, more := range d.Projects[1:] {
			if more.Tenant == d.Projects[0].Tenant && !there(more.Root) {
				differs = append(differs, "it does not work in "+more.Root)
			}
		}
	}
	for _, one := range []struct{ what, there, here string }{{"version", me.Version, version},
		{"authentication", me.Auth, d.Auth}, {"model", me.Model, models.Default()},
		{"project", me.Project, project}} {
		if one.there != "" && one.there != one.here {
			differs = append(differs, fmt.Sprintf("%s %s (here: %s)", one.what, one.there, one.here))
		}
	}
	if len(differs) == 0 {
		d.say(name, fine, "", "%s runs with the model, the authentication and the projects of these settings", address)
		return
	}
	d.say(name, warning, "run the doctor with the flags and variables of that server, for example in its terminal; all "+
		"other checks use the settings here", "%s runs with other settings: %s", address, strings.Join(differs, ", "))
}
