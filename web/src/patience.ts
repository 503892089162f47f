import { vi } from 'vitest'
import { configure } from '@testing-library/react'

// Tests wait for an event however busy the machine is. A passing test never waits this long.
configure({ asyncUtilTimeout: 60_000 })

// Cards cannot be answered for a moment when they appear. That has its own test; in all others they can be answered at
// once.
vi.mock('./cards/steady', () => ({ useSteady: () => ({ steady: true, still: () => true, shown: () => true }), settleMs: 0 }))
