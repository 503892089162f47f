import { useEffect, useRef, useSyncExternalStore } from 'react'
import { socketURL } from './api'

// The event bus, for what is not the open session: badges, lists, the inbox. All
// of a tab that want it share one socket.

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

const handlers = new Set<Handler>()
const lingers = 1_000 // milliseconds without anybody, as between two pages
const longest = 15_000 // between two attempts

let socket: WebSocket | undefined
let last = 0 // the seq of the last message
let failures = 0
let opened = false // some socket was open before
let retry: ReturnType<typeof setTimeout> | undefined
let closing: ReturnType<typeof setTimeout> | undefined
let attempt = 0 // of connecting; an older one that comes late is closed

// A Connection is how it stands with the socket, for people to know.
export interface Connection {
  state: 'connecting' | 'online' | 'offline'
  since?: Date // when it was lost
}

let connection: Connection = { state: 'connecting' }
const watchers = new Set<() => void>()

function stands(state: Connection['state']): void {
  // One that was never there counts from the first attempt that failed.
  const since = state === 'online' ? undefined : (connection.since ?? (state === 'offline' ? new Date() : undefined))
  connection = { state, since }
  for (const watcher of watchers) watcher()
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

// useConnection follows it; it is kept up by whoever uses the bus.
export function useConnection(): Connection {
  return useSyncExternalStore(watch, () => connection)
}

// reconnect tries at once what would be tried later.
export function reconnect(): void {
  if (socket === undefined && handlers.size > 0) void connect()
}

function tell(message: BusMessage): void {
  for (const handler of handlers) handler(message)
}

async function connect(): Promise<void> {
  clearTimeout(retry)
  retry = undefined
  const mine = ++attempt
  if (connection.state === 'offline') stands('connecting')
  const after = last > 0 ? `&last_event_id=${last}` : ''
  let ws: WebSocket
  try {
    const url = await socketURL(`/api/events?kinds=${kinds.join(',')}${after}`)
    if (mine !== attempt) return
    ws = new WebSocket(url)
  } catch {
    if (mine === attempt) again()
    return
  }
  socket = ws
  ws.onopen = () => {
    failures = 0
    stands('online')
    // Without a cursor the stream begins now, and what was before is not told.
    if (opened && after === '') tell(resync)
    opened = true
  }
  ws.onmessage = ({ data }: MessageEvent) => {
    const message = read(data)
    if (message === undefined) return
    if (message.phase === 'resync') last = 0
    if (message.seq > last) last = message.seq
    tell(message)
  }
  ws.onclose = () => {
    if (socket !== ws) return
    socket = undefined
    again()
  }
}

function again(): void {
  if (handlers.size === 0) return
  stands('offline')
  const wait = Math.min(longest, 500 * 2 ** failures++)
  retry = setTimeout(connect, wait * (0.75 + Math.random() / 2))
}

function disconnect(): void {
  attempt++
  clearTimeout(retry)
  retry = undefined
  const ws = socket
  socket = undefined
  ws?.close(1000)
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

// Without a network nothing is tried; with it, at once.
function back(): void {
  if (socket === undefined && retry !== undefined) void connect()
}

function listen(handler: Handler): () => void {
  handlers.add(handler)
  clearTimeout(closing)
  if (handlers.size === 1) {
    window.addEventListener('online', back)
    if (socket === undefined && retry === undefined) void connect()
  }
  return () => {
    handlers.delete(handler)
    if (handlers.size > 0) return
    window.removeEventListener('online', back)
    closing = setTimeout(disconnect, lingers)
  }
}

// useBus calls the handler with every message of the kinds, for as long as the
// component lives, over lost connections too. `resync` comes whatever the kinds.
export function useBus(wanted: BusKind[], handler: Handler): void {
  const latest = useRef({ wanted, handler })
  useEffect(() => {
    latest.current = { wanted, handler }
  })
  useEffect(
    () =>
      listen((message) => {
        const { wanted, handler } = latest.current
        if (message.phase === 'resync' || wanted.includes(message.kind as BusKind)) handler(message)
      }),
    [],
  )
}
