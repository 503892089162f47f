import { useEffect, useRef } from 'react'
import type { UiMessage } from './bus.generated'
import { stands } from './connection'
import { parseMessage } from './read'
import { forever, keepConnected, type ReconnectingSocket } from './socket'

// The event bus outside the open conversation: badges, lists, the inbox, the run page. All listeners in a tab with the
// same address share one socket.

type BusKind = 'run' | 'ask_user' | 'widget_resolved' | 'message'

const kinds: BusKind[] = ['run', 'ask_user', 'widget_resolved', 'message']

type Handler = (message: UiMessage) => void

// resync says that messages may have been missed: load the shown data again.
export const resync: UiMessage = { id: 'resync', seq: 0, rev: 0, ts_ms: 0, kind: 'run', phase: 'resync' }

const everything = `/api/events?kinds=${kinds.join(',')}`

const lingers = 1_000 // milliseconds that a socket stays open without a listener, as between two pages

// A Channel is one address of the bus, for as long as it has listeners. After a lost connection it resumes after the
// last message it had.
class Channel {
  private readonly path: string
  private readonly handlers = new Set<Handler>()
  private socket: ReconnectingSocket | undefined
  private last = 0 // the seq of the last message
  private opened = false // a connection was open before
  private closing: ReturnType<typeof setTimeout> | undefined

  constructor(path: string) {
    this.path = path
  }

  listen(handler: Handler): () => void {
    this.handlers.add(handler)
    clearTimeout(this.closing)
    this.socket ??= this.connect()
    return () => {
      this.handlers.delete(handler)
      if (this.handlers.size === 0) this.closing = setTimeout(() => this.disconnect(), lingers)
    }
  }

  private connect(): ReconnectingSocket {
    const socket = keepConnected({
      resumes: true,
      wait: forever,
      path: () => (this.last > 0 ? `${this.path}&last_event_id=${this.last}` : this.path),
      onState: (state) => {
        // The shell shows the state of the one channel that all pages share.
        if (this.path === everything) stands(states[state], () => socket.reconnect())
        if (state !== 'open') return
        // Without a cursor the stream starts now, and earlier messages are not sent.
        if (this.opened && this.last === 0) this.tell(resync)
        this.opened = true
      },
      onMessage: (data) => {
        const message = parseMessage(data)
        if (message === null) return
        if (message.phase === 'resync') this.last = 0
        if (message.seq > this.last) this.last = message.seq
        this.tell(message)
      },
    })
    return socket
  }

  private tell(message: UiMessage): void {
    for (const handler of this.handlers) handler(message)
  }

  private disconnect(): void {
    this.socket?.close()
    channels.delete(this.path)
  }
}

const states = { connecting: 'connecting', open: 'online', lost: 'offline', ended: 'offline' } as const

const channels = new Map<string, Channel>()

function channel(path: string): Channel {
  const there = channels.get(path) ?? new Channel(path)
  channels.set(path, there)
  return there
}

function useChannel(path: string | undefined, handler: Handler): void {
  const latest = useRef(handler)
  useEffect(() => {
    latest.current = handler
  })
  useEffect(() => (path === undefined ? undefined : channel(path).listen((message) => latest.current(message))), [path])
}

// useBus calls the handler with every message of the kinds, of all sessions,
// while the component is mounted. It always gets `resync`.
export function useBus(wanted: BusKind[], handler: Handler): void {
  useChannel(everything, (message) => {
    if (message.phase === 'resync' || wanted.includes(message.kind as BusKind)) handler(message)
  })
}

// useSessionBus calls the handler with every message of one session and of its
// sub-agents; without a session, with none.
export function useSessionBus(session: string | undefined, handler: Handler): void {
  useChannel(session === undefined ? undefined : `/api/events?session_id=${encodeURIComponent(session)}`, handler)
}
