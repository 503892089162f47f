package setup

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/port"
)

// Keys are the keys of model vendors. Only the operator of a server in local mode can enter them: with sign-in, keys
// are variables of the server.
type Keys struct {
	Book    *Book
	Models  Models
	Vendors []Vendor
	Local   bool // the server is in local mode
	Tenant  parley.TenantID
	May     func(ctx context.Context, who port.Principal, action parley.Action, on port.Resource) error

	given map[string]Account // accounts from the environment, which take precedence
}

// A Vendor of models has a name, and a variable that may hold its key.
type Vendor struct {
	Name, Variable string
	Keyless        bool // a compatible server at an address of one's own may need no key
}

// An Account is the address and the key of a vendor.
type Account struct {
	Key     string `json:"key"`
	BaseURL string `json:"base_url,omitempty"` // empty: the vendor's own address
	In      string `json:"-"`                  // where the key and the address come from, for errors
}

// Models are the clients of vendors.
type Models interface {
	Account(vendor string) Account
	// Use sets the account of a vendor for all later calls.
	Use(vendor string, a Account)
	// Try lists the models of a vendor with the given account.
	Try(ctx context.Context, vendor string, a Account) ([]string, error)
}

const (
	page       = "the console (Settings, Models)"
	tryWithin  = 10 * time.Second
	maxKey     = 4 << 10 // in bytes
	maxAddress = 2 << 10
	fewNames   = 5
)

// Start makes the models use the stored keys, including those that other nodes store later.
func (k *Keys) Start() {
	k.given = map[string]Account{}
	for _, v := range k.Vendors {
		if a := k.Models.Account(v.Name); a.Key != "" || a.BaseURL != "" {
			k.given[v.Name] = a
		}
	}
	if !k.Local {
		return
	}
	used := map[string]Account{}
	k.Book.OnChange(func(values []Value) {
		kept := map[string]Account{}
		for _, v := range values {
			var a Account
			if v.Tenant == k.Tenant && v.Kind == port.SetupModel && json.Unmarshal(v.Plain, &a) == nil {
				kept[v.Name] = a
			}
		}
		for _, v := range k.Vendors {
			a := kept[v.Name]
			if _, given := k.given[v.Name]; given || a == used[v.Name] {
				continue
			}
			a.In = page
			k.Models.Use(v.Name, a)
		}
		used = kept
	})
}

func (k *Keys) may(ctx context.Context, who port.Principal, vendor string) error {
	if !k.Local {
		return parley.Errorf(parley.CodeForbidden, "Keys of models are entered in the console in local mode only. "+
			"On this server they are variables of its environment, such as ANTHROPIC_API_KEY.")
	}
	if err := k.May(ctx, who, parley.ActSettings,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}); err != nil {
		return err
	}
	if _, ok := k.vendor(vendor); vendor != "" && !ok {
		return parley.Errorf(parley.CodeNotFound, "There is no vendor %.80q.", vendor)
	}
	return nil
}

func (k *Keys) vendor(name string) (Vendor, bool) {
	i := slices.IndexFunc(k.Vendors, func(v Vendor) bool { return v.Name == name })
	if i < 0 {
		return Vendor{}, false
	}
	return k.Vendors[i], true
}

// List reports for each vendor whether there is a key, and where it comes from.
func (k *Keys) List(ctx context.Context, who port.Principal) ([]port.ModelKey, error) {
	if err := k.may(ctx, who, ""); err != nil {
		return nil, err
	}
	var list []port.ModelKey
	for _, v := range k.Vendors {
		list = append(list, k.one(v.Name))
	}
	return list, nil
}

func (k *Keys) one(vendor string) port.ModelKey {
	about, _ := k.vendor(vendor)
	info := port.ModelKey{Vendor: vendor, Variable: about.Variable}
	if a, ok := k.given[vendor]; ok {
		info.From, info.Last, info.BaseURL = "environment", last(a.Key), shown(a.BaseURL)
	}
	v, ok := k.Book.Get(k.Tenant, port.SetupModel, vendor)
	if !ok {
		return info
	}
	info.Stored, info.SetAt, info.Problem = true, v.At, v.Wrong
	var a Account
	if info.From == "" && json.Unmarshal(v.Plain, &a) == nil {
		info.From, info.Last, info.BaseURL = "console", last(a.Key), shown(a.BaseURL)
	}
	return info
}

// last returns the last characters of a key, by which people recognize it. For a short key it returns nothing, because
// they would reveal too much.
func last(key string) string {
	if len(key) < 12 {
		return ""
	}
	return key[len(key)-4:]
}

// shown returns an address without its parts that may be secret.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Set stores a key. Runs that begin from now on use it.
func (k *Keys) Set(ctx context.Context, who port.Principal, vendor, key, address string) (port.ModelKey, error) {
	if err := k.may(ctx, who, vendor); err != nil {
		return port.ModelKey{}, err
	}
	if _, given := k.given[vendor]; given {
		return port.ModelKey{}, parley.Errorf(parley.CodeConflict, "The environment of the server already says how "+
			"%s is reached, and wins. Remove %s and its base URL there first.", vendor, k.one(vendor).Variable)
	}
	a, err := k.entered(vendor, key, address)
	if err != nil {
		return port.ModelKey{}, err
	}
	err = k.Book.Put(ctx, who, port.SetupModel, vendor, a, record(port.AuditModelKeySet, "model_vendor", vendor,
		map[string]any{"base_url": shown(a.BaseURL)}))
	return k.one(vendor), err
}

// entered checks an account that a person has entered. An empty key means the stored one, if that is for the same
// address.
func (k *Keys) entered(vendor, key, address string) (a Account, err error) {
	a = Account{Key: strings.TrimSpace(key), BaseURL: strings.TrimSpace(address)}
	if a.Key == "" {
		var kept Account
		if v, ok := k.Book.Get(k.Tenant, port.SetupModel, vendor); ok && json.Unmarshal(v.Plain, &kept) == nil &&
			kept.BaseURL == a.BaseURL {
			a.Key = kept.Key
		}
	}
	about, _ := k.vendor(vendor)
	u, wrong := url.Parse(a.BaseURL)
	switch {
	case len(a.Key) > maxKey || strings.ContainsFunc(a.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return a, parley.Errorf(parley.CodeInvalid, "This is no key: a key has letters, digits and signs, and no spaces.")
	case a.BaseURL != "" && (len(a.BaseURL) > maxAddress || wrong != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https"):
		return a, parley.Errorf(parley.CodeInvalid,
			"The base URL is not the address of a server. Write it like https://host/v1.")
	case strings.ContainsAny(a.BaseURL, "?#"):
		return a, parley.Errorf(parley.CodeInvalid, "The base URL has a query or a fragment. Leave out everything from "+
			"%q on: the paths of the vendor are added at its end.", a.BaseURL[strings.IndexAny(a.BaseURL, "?#"):][:1])
	case a.BaseURL != "" && u.User != nil:
		return a, parley.Errorf(parley.CodeInvalid, "The base URL holds a name or password. Leave them out.")
	case a.Key == "" && (!about.Keyless || a.BaseURL == ""):
		return a, parley.Errorf(parley.CodeInvalid, "The key is missing.")
	}
	return a, nil
}

// Remove deletes a stored key.
func (k *Keys) Remove(ctx context.Context, who port.Principal, vendor string) error {
	if err := k.may(ctx, who, vendor); err != nil {
		return err
	}
	if _, ok := k.Book.Get(k.Tenant, port.SetupModel, vendor); !ok {
		return parley.Errorf(parley.CodeNotFound, "No key of %s was entered here.", vendor)
	}
	return k.Book.Put(ctx, who, port.SetupModel, vendor, nil, record(port.AuditModelKeyRemoved, "model_vendor",
		vendor, map[string]any{}))
}

// Try lists the models of a vendor with the entered account. If nothing was entered and the environment has an account,
// Try uses that one.
func (k *Keys) Try(ctx context.Context, who port.Principal, vendor, key, address string) (port.ModelKeyTrial, error) {
	if err := k.may(ctx, who, vendor); err != nil {
		return port.ModelKeyTrial{}, err
	}
	used, given := k.given[vendor]
	if !given || key != "" || address != "" {
		a, err := k.entered(vendor, key, address)
		if err != nil {
			return port.ModelKeyTrial{}, err
		}
		a.In = page
		used = a
	}
	if err := k.Book.Note(ctx, who, record(port.AuditModelKeyTested, "model_vendor", vendor,
		map[string]any{"base_url": shown(used.BaseURL)})); err != nil {
		return port.ModelKeyTrial{}, err
	}
	within, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	names, err := k.Models.Try(within, vendor, used)
	if err != nil {
		return port.ModelKeyTrial{Reason: reason(within, err)}, nil
	}
	slices.Sort(names)
	return port.ModelKeyTrial{Works: true, Models: len(names), Names: names[:min(len(names), fewNames)]}, nil
}

// reason explains why a vendor returned no list. It includes the vendor's message, without any part of the key.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "There was no answer within " + tryWithin.String() + "."
	}
	text := parley.MessageOf(err)
	if e, ok := err.(*parley.Error); ok && e.Vendor != nil && e.Vendor.Message != "" &&
		!strings.Contains(text, e.Vendor.Message) {
		text += " It says: " + e.Vendor.Message
	}
	return text
}

func record(action, resource, id string, more map[string]any) parley.Audit {
	return parley.Audit{Action: action, Resource: resource, ID: id, Metadata: parley.Metadata(more)}
}
