import { useEffect, useRef } from 'react'
import { socketURL } from './api'
import { stands } from './connection'

// The event bus, for what is not the open conversation: badges, lists, the inbox,
// a run that is looked into. All of a tab that want the same share one socket.

export type BusKind = 'run' | 'ask_user' | 'widget_resolved' | 'message'

const kinds: BusKind[] = ['run', 'ask_user', 'widget_resolved', 'message']

export interface BusMessage {
  id: string
  seq: number
  kind: string
  phase?: string
  text?: string
  agent_id?: string
  session_id?: string
  data?: unknown
}

type Handler = (message: BusMessage) => void

// resync says that something may have been missed: fetch again what you show.
export const resync: BusMessage = { id: 'resync', seq: 0, kind: 'run', phase: 'resync' }

const everything = `/api/events?kinds=${kinds.join(',')}`

const lingers = 1_000 // milliseconds without anybody, as between two pages
const longest = 15_000 // between two attempts

// A Channel is one socket, for as long as somebody listens, over lost connections
// too: it goes on after the last message it had.
class Channel {
  private readonly path: string
  private readonly handlers = new Set<Handler>()
  private socket: WebSocket | undefined
  private last = 0 // the seq of the last message
  private failures = 0
  private opened = false // some socket was open before
  private retry: ReturnType<typeof setTimeout> | undefined
  private closing: ReturnType<typeof setTimeout> | undefined
  private attempt = 0 // of connecting; an older one that comes late is left

  constructor(path: string) {
    this.path = path
  }

  listen(handler: Handler): () => void {
    this.handlers.add(handler)
    clearTimeout(this.closing)
    if (this.handlers.size === 1) {
      window.addEventListener('online', this.back)
      if (this.socket === undefined && this.retry === undefined) void this.connect()
    }
    return () => {
      this.handlers.delete(handler)
      if (this.handlers.size > 0) return
      window.removeEventListener('online', this.back)
      this.closing = setTimeout(() => this.disconnect(), lingers)
    }
  }

  private async connect(): Promise<void> {
    clearTimeout(this.retry)
    this.retry = undefined
    const mine = ++this.attempt
    if (this.failures > 0) this.stands('connecting')
    const after = this.last > 0 ? `&last_event_id=${this.last}` : ''
    let ws: WebSocket
    try {
      const url = await socketURL(this.path + after)
      if (mine !== this.attempt) return
      ws = new WebSocket(url)
    } catch {
      if (mine === this.attempt) this.again()
      return
    }
    this.socket = ws
    ws.onopen = () => {
      this.failures = 0
      this.stands('online')
      // Without a cursor the stream begins now, and what was before is not told.
      if (this.opened && after === '') this.tell(resync)
      this.opened = true
    }
    ws.onmessage = ({ data }: MessageEvent) => {
      const message = read(data)
      if (message === undefined) return
      if (message.phase === 'resync') this.last = 0
      if (message.seq > this.last) this.last = message.seq
      this.tell(message)
    }
    ws.onclose = () => {
      if (this.socket !== ws) return
      this.socket = undefined
      this.again()
    }
  }

  private tell(message: BusMessage): void {
    for (const handler of this.handlers) handler(message)
  }

  private again(): void {
    if (this.handlers.size === 0) return
    this.stands('offline')
    const wait = Math.min(longest, 500 * 2 ** this.failures++)
    this.retry = setTimeout(() => void this.connect(), wait * (0.75 + Math.random() / 2))
  }

  // What is shared by all pages is what people are told of.
  private stands(state: 'connecting' | 'online' | 'offline'): void {
    if (this.path === everything) stands(state, this.back)
  }

  // back: the network is there again, so nobody waits any longer.
  private readonly back = () => {
    if (this.socket === undefined && this.retry !== undefined) void this.connect()
  }

  private disconnect(): void {
    this.attempt++
    clearTimeout(this.retry)
    this.retry = undefined
    const ws = this.socket
    this.socket = undefined
    ws?.close(1000)
    channels.delete(this.path)
  }
}

const channels = new Map<string, Channel>()

function channel(path: string): Channel {
  const there = channels.get(path) ?? new Channel(path)
  channels.set(path, there)
  return there
}

// A frame that cannot be read is logged and passed over.
function read(data: unknown): BusMessage | undefined {
  try {
    const message = JSON.parse(String(data)) as BusMessage
    if (typeof message.kind === 'string' && typeof message.seq === 'number') return message
  } catch {
    // said below
  }
  console.warn('not a message of the event bus', data)
  return undefined
}

function useChannel(path: string | undefined, handler: Handler): void {
  const latest = useRef(handler)
  useEffect(() => {
    latest.current = handler
  })
  useEffect(() => (path === undefined ? undefined : channel(path).listen((message) => latest.current(message))), [path])
}

// useBus calls the handler with every message of the kinds, of all sessions, for
// as long as the component lives. `resync` comes whatever the kinds.
export function useBus(wanted: BusKind[], handler: Handler): void {
  useChannel(everything, (message) => {
    if (message.phase === 'resync' || wanted.includes(message.kind as BusKind)) handler(message)
  })
}

// useSessionBus calls the handler with everything that happens in one session and
// below it; without one, with nothing.
export function useSessionBus(session: string | undefined, handler: Handler): void {
  useChannel(session === undefined ? undefined : `/api/events?session_id=${encodeURIComponent(session)}`, handler)
}
