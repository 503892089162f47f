import { configure } from '@testing-library/react'

// Tests wait for an event however busy the machine is. A passing test never waits this long.
configure({ asyncUtilTimeout: 60_000 })
