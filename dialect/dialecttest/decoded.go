package dialecttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"parley"
)

// Decoded is a decoded message of a client: a command or a refusal.
type Decoded struct {
	Command parley.Command
	Refusal string
	Request string // request name for answers to the message
	Shape   string // the message's spelling, in dialects with several
}

func (d Decoded) check() error {
	switch {
	case (d.Command.Do == nil) == (d.Refusal == ""):
		return fmt.Errorf("%s is not either a command or a refusal", d)
	case d.Refusal != "" && !reflect.DeepEqual(d.Command, parley.Command{}):
		return fmt.Errorf("%s leaves something of a command in %+v", d, d.Command)
	}
	return nil
}

// String returns a line of a commands section: an object with the fields that
// are not empty, in a fixed order. The session is included if it is not
// Session.
func (d Decoded) String() string {
	var o object
	if d.Refusal != "" {
		o.add("refusal", d.Refusal)
	}
	if d.Command.Do != nil {
		o.add("command", reflect.TypeOf(d.Command.Do).Name())
		o.fields(reflect.ValueOf(d.Command.Do))
		o.addUnless("id", d.Command.ID, "")
		o.addUnless("session", d.Command.Session, Session)
	}
	o.addUnless("request", d.Request, "")
	o.addUnless("shape", d.Shape, "")
	return "{" + strings.Join(o, ",") + "}"
}

// object is a JSON object under construction, with its keys in order.
type object []string

func (o *object) add(key string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", v, err)) // commands are plain data
	}
	*o = append(*o, fmt.Sprintf("%q:%s", key, raw))
}

func (o *object) addUnless(key string, v, usual any) {
	if s := fmt.Sprint(v); s != fmt.Sprint(usual) {
		o.add(key, v)
	}
}

// fields adds the fields of a command that are not zero, under their names.
func (o *object) fields(v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			o.add(v.Type().Field(i).Name, f.Interface())
		}
	}
}
