import { act, renderHook } from '@testing-library/react'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { byCookie } from '../wire/api'
import { FakeSocket } from '../wire/fakeSocket'
import { useAgentWebSocket } from './useAgentWebSocket'

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  FakeSocket.made = []
  byCookie(false)
})

const settle = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms))

async function mounted(enabled = true) {
  const hook = renderHook(({ enabled, id }) => useAgentWebSocket(id, enabled), {
    initialProps: { enabled, id: 'coder' },
  })
  await settle()
  return hook
}

async function connected() {
  const hook = await mounted()
  act(() => FakeSocket.last.open())
  return hook
}

it('connects when it is enabled, and not before', async () => {
  const hook = await mounted(false)
  expect(FakeSocket.made).toHaveLength(0)
  expect(hook.result.current.status).toBe('disconnected')
  hook.rerender({ enabled: true, id: 'coder' })
  expect(hook.result.current.status).toBe('connecting')
  await settle()
  expect(new URL(FakeSocket.last.url).pathname).toBe('/api/v1/agents/coder/ws')
  act(() => FakeSocket.last.open())
  expect(hook.result.current.status).toBe('connected')
})

it('sends a message and shows the answer', async () => {
  const { result } = await connected()
  act(() => result.current.sendMessage('  '))
  expect(FakeSocket.last.sent).toEqual([])
  act(() => result.current.sendMessage('Hello'))
  expect(FakeSocket.last.sent).toEqual([{ type: 'message', content: 'Hello' }])
  expect(result.current.busy).toBe(true)
  act(() => {
    FakeSocket.last.say('no frame')
    FakeSocket.last.say({ type: 'a type of tomorrow' })
    FakeSocket.last.say({ type: 'chunk', request_id: 'r', content: 'Hi', done: true })
  })
  expect(result.current.messages.map((message) => [message.type, message.content])).toEqual([
    ['user', 'Hello'],
    ['assistant', 'Hi'],
  ])
  expect(result.current.busy).toBe(false)
})

it('answers cards', async () => {
  const { result } = await connected()
  act(() =>
    FakeSocket.last.say({ type: 'approval_request', request_id: 'r', id: 's.4', tool_name: 'shell', command: 'rm x' }),
  )
  expect(result.current.cards).toHaveLength(1)
  act(() => result.current.respond({ type: 'approval_response', id: 's.4', decision: 'deny' }))
  expect(FakeSocket.last.sent).toEqual([{ type: 'approval_response', id: 's.4', decision: 'deny' }])
  act(() => FakeSocket.last.say({ type: 'approval_closed', request_id: 'r', id: 's.4', decision: 'deny' }))
  expect(result.current.cards).toHaveLength(0)
})

it('reports a message that cannot be sent', async () => {
  const { result } = await mounted()
  act(() => result.current.sendMessage('Hello'))
  expect(result.current.messages).toEqual([])
  expect(result.current.error).toMatch(/not sent/)
})

describe('a lost connection', () => {
  it('is tried again three times, ever later, and then given up', async () => {
    const { result } = await connected()
    act(() => FakeSocket.last.drop(1006))
    for (const wait of [1_000, 2_000, 4_000]) {
      const before = FakeSocket.made.length
      expect(result.current.status).toBe('connecting')
      await settle(wait - 1)
      expect(FakeSocket.made).toHaveLength(before)
      await settle(1)
      expect(FakeSocket.made).toHaveLength(before + 1)
      act(() => FakeSocket.last.drop(1006))
    }
    expect(result.current.status).toBe('error')
    expect(result.current.error).toBe('The connection was lost.')
    await settle(120_000)
    expect(FakeSocket.made).toHaveLength(4)
    act(() => result.current.reconnect())
    await settle()
    expect(FakeSocket.made).toHaveLength(5)
  })

  it('that opens and breaks at once is not tried for ever', async () => {
    await connected()
    for (let i = 0; i < 10; i++) {
      act(() => FakeSocket.last.drop(1011))
      await settle(10_000)
      if (FakeSocket.last.readyState === 0) act(() => FakeSocket.last.open())
    }
    expect(FakeSocket.made).toHaveLength(4)
  })

  it('counts anew once something was heard, or it has lasted', async () => {
    await connected()
    for (let i = 0; i < 6; i++) {
      if (i % 2 === 0) act(() => FakeSocket.last.say({ type: 'tool_executed', request_id: 'r', tool_name: 'x' }))
      else await settle(31_000)
      act(() => FakeSocket.last.drop(1006))
      await settle(4_000)
      expect(FakeSocket.made).toHaveLength(i + 2)
      act(() => FakeSocket.last.open())
    }
  })

  it('ends what was under way, and another conversation begins', async () => {
    const { result } = await connected()
    act(() => result.current.sendMessage('Hello'))
    act(() => FakeSocket.last.say({ type: 'chunk', request_id: 'r', content: 'Hi', done: false }))
    act(() => FakeSocket.last.drop(1006))
    expect(result.current.messages.some((message) => message.streaming)).toBe(false)
    expect(result.current.busy).toBe(false)
    await settle(1_000)
    act(() => FakeSocket.last.open())
    expect(result.current.messages.at(-1)!.content).toMatch(/^A new conversation/)
  })

  it.each([1000, 1001, 1008])('is not tried again after %d', async (code) => {
    const { result } = await connected()
    act(() => FakeSocket.last.drop(code, code === 1008 ? 'The session was halted.' : ''))
    await settle(120_000)
    expect(FakeSocket.made).toHaveLength(1)
    expect(result.current.status).toBe('disconnected')
    if (code === 1008) expect(result.current.error).toBe('The session was halted.')
  })
})

it('closes with 1000 when it goes, and stays away', async () => {
  const hook = await connected()
  hook.unmount()
  expect(FakeSocket.last.closed).toBe(1000)
  act(() => FakeSocket.last.drop(1006))
  await settle(120_000)
  expect(FakeSocket.made).toHaveLength(1)
})

it('closes with 1000 when the agent stops, and forgets one agent with the next', async () => {
  const hook = await connected()
  act(() => hook.result.current.sendMessage('Hello'))
  hook.rerender({ enabled: false, id: 'coder' })
  expect(FakeSocket.last.closed).toBe(1000)
  expect(hook.result.current.messages).toHaveLength(1)
  hook.rerender({ enabled: true, id: 'scout' })
  await settle()
  expect(hook.result.current.messages).toHaveLength(0)
  expect(FakeSocket.last.url).toContain('/agents/scout/ws')
})

describe('for a signed-in user', () => {
  it('asks for a ticket for the agent', async () => {
    byCookie(true)
    const fetch = vi.fn(async (_path: string, _init: RequestInit) => new Response('{"ticket":"t1"}', { status: 201 }))
    vi.stubGlobal('fetch', fetch)
    await mounted()
    expect(fetch.mock.calls[0]![1].body).toBe('{"agent":"coder"}')
    expect(FakeSocket.last.url).toContain('?ticket=t1')
  })

  it('says why there is none, and does not ask again', async () => {
    byCookie(true)
    const fetch = vi.fn(
      async () => new Response('{"error":{"code":"unauthorized","message":"token expired"}}', { status: 401 }),
    )
    vi.stubGlobal('fetch', fetch)
    const { result } = await mounted()
    await settle(120_000)
    expect(fetch).toHaveBeenCalledTimes(1)
    expect([result.current.status, result.current.error]).toEqual(['error', 'token expired'])
  })
})
