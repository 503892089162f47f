package parley

// A Stream is where a command prints.
type Stream string

const (
	Stdout Stream = "" // also what tools print that are no commands
	Stderr Stream = "stderr"
)

type ToolSpec struct {
	Name        string
	Description string
	Parameters  string // JSON Schema
	ReadOnly    bool   // changes nothing, whatever its arguments: runs that plan may have it
	Anywhere    bool   // touches nothing that belongs to a tenant: agents of every one may have it
	Client      bool   // the client of the input carries its calls out
}
