import { vi } from 'vitest'
import { configure } from '@testing-library/react'

// Tests wait for an event however busy the machine is. A passing test never waits this long.
configure({ asyncUtilTimeout: 60_000 })

// Cards rest for a moment when they appear. That has a test of its own; elsewhere they can be answered at once.
vi.mock('./cards/steady', () => ({ useSteady: () => ({ steady: true, still: () => true, shown: () => true }), settleMs: 0 }))
