package parley

// Names that only tests of this package use.
type (
	Child  = childState
	Grant  = grant
	Output = openOutput
	Trust  = trust
	Turn   = openTurn
)

const MaxClientTools = maxClientTools

var TrustOf = trustOf
