package sandbox

// oldModes is empty: only amd64 has these calls.
var oldModes []moded

var oldNamed []uint32
