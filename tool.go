package parley

// A Stream is the output stream of a command.
type Stream string

const (
	Stdout Stream = "" // also for output of other tools
	Stderr Stream = "stderr"
)

type ToolSpec struct {
	Name        string
	Description string
	Parameters  string // JSON Schema
	ReadOnly    bool   // changes nothing, whatever its arguments: planning runs may use it
	Anywhere    bool   // touches nothing that belongs to a tenant: agents of every tenant may use it
	Client      bool   // the client of the input carries out its calls
}
