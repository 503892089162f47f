import { act, renderHook } from '@testing-library/react'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { useBus } from './bus'
import type { UiMessage } from './bus.generated'
import { FakeSocket } from './fakeSocket'

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

afterEach(async () => {
  await act(() => vi.advanceTimersByTimeAsync(60_000)) // without listeners, the socket is closed
  vi.useRealTimers()
  vi.unstubAllGlobals()
  FakeSocket.made = []
})

const settle = () => act(() => vi.advanceTimersByTimeAsync(0))

it('shares one socket, goes on after the last message, and says when something may be missing', async () => {
  const cards: UiMessage[] = []
  const runs: UiMessage[] = []
  const a = renderHook(() => useBus(['ask_user', 'widget_resolved'], (m) => cards.push(m)))
  const b = renderHook(() => useBus(['run'], (m) => runs.push(m)))
  await settle()
  expect(FakeSocket.made).toHaveLength(1)
  expect(FakeSocket.last.url).toContain('/api/events?kinds=run,ask_user,widget_resolved,message')
  expect(FakeSocket.last.url).not.toContain('last_event_id')

  // lost before its first message
  FakeSocket.last.open()
  FakeSocket.last.drop()
  await act(() => vi.advanceTimersByTimeAsync(1_000))
  expect(FakeSocket.made).toHaveLength(2)
  FakeSocket.last.open()
  expect(cards.map((m) => m.phase)).toEqual(['resync'])
  expect(runs.map((m) => m.phase)).toEqual(['resync'])

  FakeSocket.last.say('{ no frame')
  FakeSocket.last.say({ kind: 'ask_user' })
  FakeSocket.last.say({ id: 'x', seq: 16, kind: 'ask_user' })
  FakeSocket.last.say({ id: 'y', seq: 24, kind: 'run', phase: 'outcome' })
  expect(cards.map((m) => m.id)).toEqual(['resync', 'x'])
  expect(runs.map((m) => m.id)).toEqual(['resync', 'y'])

  // lost with a cursor
  FakeSocket.last.drop()
  await act(() => vi.advanceTimersByTimeAsync(1_000))
  expect(FakeSocket.last.url).toContain('last_event_id=24')
  FakeSocket.last.open()
  expect(cards).toHaveLength(2)

  a.unmount()
  await act(() => vi.advanceTimersByTimeAsync(5_000))
  expect(FakeSocket.last.closed).toBeUndefined()
  b.unmount()
  await act(() => vi.advanceTimersByTimeAsync(5_000))
  expect(FakeSocket.last.closed).toBe(1000)
  expect(FakeSocket.made).toHaveLength(3)
})

it('waits longer each time the server is not there', async () => {
  const hook = renderHook(() => useBus(['run'], () => {}))
  await settle()
  for (let i = 0; i < 20; i++) {
    FakeSocket.last.drop()
    await act(() => vi.advanceTimersByTimeAsync(20_000))
  }
  const before = FakeSocket.made.length
  FakeSocket.last.drop()
  await act(() => vi.advanceTimersByTimeAsync(10_000))
  expect(FakeSocket.made).toHaveLength(before)
  await act(() => window.dispatchEvent(new Event('online')))
  await settle()
  expect(FakeSocket.made).toHaveLength(before + 1)
  hook.unmount()
})
