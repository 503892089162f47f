package sandbox

// oldModes are calls that only other kinds of machines have.
var oldModes []moded

var oldNamed []uint32
