package setup

import (
	"encoding/json"

	"parley"
	"parley/port"
)

// A Secret is a value from the console that may be secret.
type Secret struct {
	Name string // of the header or variable; "key" for the key of a model
	Text string
}

// Secrets returns the secrets in all values, by tenant. The screen redacts them for that tenant.
func Secrets(values []Value) map[parley.TenantID][]Secret {
	all := map[parley.TenantID][]Secret{}
	for _, v := range values {
		var a Account
		if v.Kind == port.SetupModel && json.Unmarshal(v.Plain, &a) == nil && a.Key != "" {
			all[v.Tenant] = append(all[v.Tenant], Secret{"key", a.Key})
		}
		var s port.ServerSetup
		if v.Kind == port.SetupServer && json.Unmarshal(v.Plain, &s) == nil {
			for _, given := range []map[string]string{s.Env, s.Headers} {
				for name, text := range given {
					all[v.Tenant] = append(all[v.Tenant], Secret{name, text})
				}
			}
		}
	}
	return all
}
