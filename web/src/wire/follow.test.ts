import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FakeSocket } from './fakeSocket'
import { follow, type ConnectionStatus, type HistoryPage } from './follow'
import type { UiMessage } from './bus.generated'

const session = '550e8400-e29b-41d4-a716-446655440000'

class FakeStream {
  static made: FakeStream[] = []
  readonly url: string
  closed = false
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onerror: (() => void) | null = null
  constructor(url: string) {
    this.url = url
    FakeStream.made.push(this)
  }
  close() {
    this.closed = true
  }
}

let asked: string[] = []
let answers: (() => Response | Promise<Response>)[] = []
let seen: UiMessage[] = []
let histories: HistoryPage[] = []
let statuses: ConnectionStatus[] = []

const page =
  (cursor: string, ...messages: object[]) =>
  () =>
    new Response(JSON.stringify({ messages, cursor, earlier: null }))
const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms)
const begin = () =>
  follow(session, {
    onHistory: (h) => histories.push(h),
    onMessage: (m) => seen.push(m),
    onStatus: (s) => statuses.push(s),
  })

beforeEach(() => {
  asked = []
  answers = []
  seen = []
  histories = []
  statuses = []
  FakeSocket.made = []
  FakeStream.made = []
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('EventSource', FakeStream)
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path)
    if (path === '/api/health') return Promise.resolve(new Response('{"ok":true}'))
    const next = answers.shift()
    return next === undefined ? Promise.reject(new TypeError('no')) : Promise.resolve(next())
  })
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('reads history and goes on exactly behind it', async () => {
  answers = [page('k3-87', { id: 'a', seq: 80, kind: 'message' })]
  const following = begin()
  await settle()
  expect(histories.map((h) => h.messages.map((m) => m.seq))).toEqual([[80]])
  expect(FakeSocket.last.url).toContain(`session_id=${session}&last_event_id=k3-87`)
  FakeSocket.last.open()
  FakeSocket.last.say({ id: 'b', seq: 88, kind: 'token', text: 'x' })
  FakeSocket.last.say('{"broken')
  FakeSocket.last.say({ nothing: true })
  FakeSocket.last.say({ id: 'c', seq: 96, kind: 'token', text: 'y' })
  expect(seen.map((m) => m.seq)).toEqual([88, 96])
  expect(statuses).toEqual(['loading', 'live'])

  FakeSocket.last.drop()
  expect(statuses.at(-1)).toBe('reconnecting')
  await settle(1_000)
  expect(FakeSocket.made).toHaveLength(2)
  expect(FakeSocket.last.url).toContain('last_event_id=k3-96')
  expect(histories).toHaveLength(1)
  following.close()
  expect(FakeSocket.last.closed).toBe(1000)
})

it('reads history again when the server cannot go on from there', async () => {
  answers = [page('k3-87'), page('k4-15', { id: 'a', seq: 8, kind: 'message' })]
  const following = begin()
  await settle()
  FakeSocket.last.open()
  FakeSocket.last.say({ id: 'r', seq: 9, kind: 'run', phase: 'resync', data: { reason: 'unknown_epoch' } })
  await settle()
  expect(histories).toHaveLength(2)
  expect(FakeSocket.last.url).toContain('last_event_id=k4-15')
  expect(seen).toEqual([])
  following.close()
})

it('waits for a server that is not there, longer each time, and not for one that refuses', async () => {
  const following = begin()
  await settle(60_000)
  expect(statuses.at(-1)).toBe('reconnecting')
  expect(asked.length).toBeGreaterThan(3)
  expect(asked.length).toBeLessThan(15)
  answers = [page('k3-87')]
  window.dispatchEvent(new Event('online'))
  await settle()
  expect(histories).toHaveLength(1)
  following.close()

  answers = [() => new Response('{"error":"no such session"}', { status: 404 })]
  const gone = begin()
  await settle(60_000)
  expect(statuses.at(-1)).toBe('failed')
  gone.close()
})

it('uses a stream where no socket opens, but not because the server was away', async () => {
  answers = [page('k3-87')]
  const following = begin()
  await settle()
  FakeSocket.last.drop()
  await settle(20_000)
  FakeSocket.last.drop()
  await settle(20_000)
  expect(FakeStream.made).toHaveLength(1)
  expect(FakeStream.made[0]!.url).toMatch(/^http.*last_event_id=k3-87/)
  FakeStream.made[0]!.onopen?.()
  FakeStream.made[0]!.onmessage?.({ data: '{"id":"b","seq":88,"kind":"token"}' })
  expect(seen.map((m) => m.seq)).toEqual([88])
  following.close()
  expect(FakeStream.made[0]!.closed).toBe(true)

  vi.stubGlobal('fetch', (path: string) =>
    path === '/api/health' ? Promise.reject(new TypeError('no')) : Promise.resolve(page('k3-87')()),
  )
  const away = begin()
  await settle()
  for (let i = 0; i < 6; i++) {
    FakeSocket.last.drop()
    await settle(20_000)
  }
  expect(FakeStream.made).toHaveLength(1)
  away.close()
})

it('takes no history that came too late', async () => {
  let answerLate = (_: Response) => {}
  answers = [() => new Promise<Response>((resolve) => (answerLate = resolve)), page('k3-95')]
  const following = begin()
  await settle()
  following.retry()
  await settle()
  FakeSocket.last.open()
  FakeSocket.last.say({ id: 'b', seq: 96, kind: 'token' })
  answerLate(page('k3-87')())
  await settle()
  expect(histories.map((h) => h.cursor)).toEqual(['k3-95'])
  FakeSocket.last.drop()
  await settle(1_000)
  expect(FakeSocket.last.url).toContain('last_event_id=k3-96')
  following.close()
})

it('hears nothing any more once it is closed', async () => {
  answers = [page('k3-87')]
  const following = begin()
  await settle()
  following.close()
  FakeSocket.last.say({ id: 'b', seq: 88, kind: 'token' })
  await settle(60_000)
  expect(seen).toEqual([])
  expect(FakeSocket.made).toHaveLength(1)
})
