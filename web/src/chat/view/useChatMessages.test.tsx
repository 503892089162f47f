import { act, renderHook, waitFor } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { FakeSocket } from '../../wire/fakeSocket'
import { useChatMessages } from './useChatMessages'
import { server, session, useServer } from './testing'

useServer()

describe('useChatMessages', () => {
  it('draws once per picture, however much comes', async () => {
    FakeSocket.made = []
    vi.stubGlobal('WebSocket', FakeSocket)
    let paint: (() => void)[] = []
    vi.stubGlobal('requestAnimationFrame', (f: () => void) => paint.push(f))
    vi.stubGlobal('cancelAnimationFrame', () => {})
    server.answer = () => new Response('{"messages":[],"cursor":"e-7","earlier":null}')
    let drawn = 0
    const { result } = renderHook(() => {
      drawn++
      return useChatMessages(session)
    })
    await waitFor(() => expect(FakeSocket.made).toHaveLength(1))
    act(() => FakeSocket.last.open())
    const before = drawn
    const send = (seq: number, over: object) =>
      FakeSocket.last.say({ id: 'x' + seq, seq, ts_ms: 1, session_id: session, agent_id: 'coder', ...over })
    act(() => {
      send(8, { kind: 'message', text: 'Hi', data: { from: 'user', to: 'coder', role: 'user', input_id: 's.2' } })
      for (let seq = 16; seq < 816; seq += 8) send(seq, { kind: 'token', text: 'x' })
      send(16, { kind: 'token', text: 'again' })
    })
    expect(drawn).toBe(before)
    act(() => {
      const now = paint
      paint = []
      now.forEach((f) => f())
    })
    expect(drawn).toBe(before + 1)
    expect(result.current.state.messages.map((m) => m.text)).toEqual(['Hi', 'x'.repeat(100)])
  })
})
