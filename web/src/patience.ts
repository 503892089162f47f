import { configure } from '@testing-library/react'

// Tests wait for what has to happen, however busy the machine is. None that
// passes waits this long.
configure({ asyncUtilTimeout: 60_000 })
