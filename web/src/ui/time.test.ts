import { expect, it } from 'vitest'
import { lasting, since } from './time'

const now = Date.parse('2026-03-01T12:00:00Z')
const s = 1000

it.each([
  [0, 'now'],
  [-9 * s, 'now'],
  [42 * s, '42 s ago'],
  [119 * s, '1 min ago'],
  [-90 * s, 'in 1 min'],
  [2 * 3600 * s, '2 h ago'],
  [3 * 86400 * s, '3 d ago'],
])('since %d', (ago, want) => expect(since(now - ago, now)).toBe(want))

it.each([
  [-5, '0 ms'],
  [400, '400 ms'],
  [949, '949 ms'],
  [951, '1.0 s'],
  [9_940, '9.9 s'],
  [9_960, '10 s'],
  [59_600, '1 min 0 s'],
  [3_661_000, '1 h 1 min'],
])('lasting %d', (ms, want) => expect(lasting(ms)).toBe(want))
