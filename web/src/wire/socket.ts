import { ask, Problem, socketURL } from './api'

// The only reconnecting socket of the console. The event bus, a conversation and the debug console differ in the
// address, in the delays, and in the handling of messages.

// A Cause is why there is no connection: the request for its ticket or address failed, or the socket was closed.
export interface Cause {
  problem?: Problem
  code?: number
  reason?: string
}

type SocketState =
  | 'connecting'
  | 'open'
  | 'lost' // waits before the next attempt
  | 'ended' // there will be no further attempt

interface SocketOptions {
  // path returns the address of the next attempt, with its cursor. It may have to fetch the cursor.
  path: (signal: AbortSignal) => string | Promise<string>
  agent?: string // named by the ticket
  // wait returns the delay before the next attempt, in milliseconds, after so many consecutive failures; undefined:
  // give up.
  wait: (failures: number, cause: Cause) => number | undefined
  onState: (state: SocketState, cause: Cause) => void
  onMessage: (data: unknown) => void
  resumes?: boolean // a new connection continues where the old one ended, so it may replace one that seems open
  stream?: boolean // server-sent events can be used instead, if a proxy blocks sockets
}

export interface ReconnectingSocket {
  send(frame: object): boolean // false: there is no connection, and the frame was not sent
  reconnect(): void // without waiting
  close(): void
}

// A connection has worked if a message came over it, or if it lasted this long. Failures are counted anew then. A
// connection that opens and breaks at once counts as a failure each time.
const steady = 5_000

const unopenedSockets = 2 // failures against a responding server before a stream is tried

// forever waits longer each time, up to 15 seconds. Delays are random, so that tabs do not reconnect all at once.
export function forever(failures: number): number {
  return Math.min(15_000, 500 * 2 ** failures) * (0.75 + Math.random() / 2)
}

export function keepConnected(options: SocketOptions): ReconnectingSocket {
  let attempt = new AbortController() // aborted when the next attempt begins: messages of an older attempt are ignored
  let failures = 0
  let unopened = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let line: Line | undefined

  const fail = (cause: Cause) => {
    line = undefined
    const wait = options.wait(failures, cause)
    if (wait === undefined) return options.onState('ended', cause)
    failures++
    timer = setTimeout(connect, wait)
    options.onState('lost', cause)
  }

  const connect = async () => {
    clearTimeout(timer)
    timer = undefined
    line?.close()
    line = undefined
    attempt.abort()
    attempt = new AbortController()
    const { signal } = attempt
    const current = () => !signal.aborted
    options.onState('connecting', {})
    let url: string
    try {
      const path = await options.path(signal)
      if (!current()) return
      url = await socketURL(path, options.agent)
    } catch (error) {
      if (current()) fail({ problem: problemOf(error) })
      return
    }
    if (!current()) return
    let since: number | undefined
    const open = options.stream && unopened >= unopenedSockets ? openStream : openSocket
    line = open(url, {
      opened() {
        if (!current()) return
        since = Date.now()
        unopened = 0
        options.onState('open', {})
      },
      heard(data) {
        if (!current()) return
        failures = 0
        options.onMessage(data)
      },
      closed(cause) {
        if (!current()) return
        if (since !== undefined && Date.now() - since >= steady) failures = 0
        fail(cause)
        // The server responds, but no socket opens: a proxy blocks sockets.
        if (options.stream && since === undefined)
          ask('GET', '/api/health').then(
            () => unopened++,
            () => {},
          )
      },
    })
  }

  const reconnect = () => {
    failures = 0
    void connect()
  }
  const online = () => {
    if (timer !== undefined || options.resumes) reconnect()
  }
  window.addEventListener('online', online)
  void connect()
  return {
    send: (frame) => line?.send(frame) ?? false,
    reconnect,
    close() {
      attempt.abort()
      clearTimeout(timer)
      window.removeEventListener('online', online)
      line?.close()
      line = undefined
    },
  }
}

function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(error instanceof Error ? error.message : String(error), 0)
}

interface Line {
  send(frame: object): boolean
  close(): void
}

interface Listener {
  opened(): void
  heard(data: unknown): void
  closed(cause: Cause): void
}

function openSocket(url: string, { opened, heard, closed }: Listener): Line {
  const socket = new WebSocket(url)
  socket.onopen = opened
  socket.onmessage = (event) => heard(event.data)
  socket.onclose = ({ code, reason }) => closed({ code, reason })
  return {
    send(frame) {
      if (socket.readyState !== WebSocket.OPEN) return false
      socket.send(JSON.stringify(frame))
      return true
    },
    close: () => socket.close(1000),
  }
}

// A browser reconnects a stream by itself, but with its used ticket.
function openStream(url: string, { opened, heard, closed }: Listener): Line {
  const stream = new EventSource(url.replace(/^ws/, 'http'))
  stream.onopen = opened
  stream.onmessage = (event) => heard(event.data)
  stream.onerror = () => {
    stream.close()
    closed({})
  }
  return { send: () => false, close: () => stream.close() }
}
