package parley

// What tests of this package name and nobody else does.
type (
	Grant = grant
	Trust = trust
)

var TrustOf = trustOf
