// Following a conversation: its history, then the bus from where that ended, for
// as long as somebody looks. What is lost on the way is asked for again.

import { ask, Problem, socketURL } from './api'
import type { History, UiMessage } from '../chat/model/wire'
import { fields, list, num, parseMessage, readMessage, str } from './read'

export type ConnectionStatus =
  | 'loading' // history is fetched
  | 'live'
  | 'reconnecting' // the server is there, or will be: it is asked again and again
  | 'failed' // asking again the same would not help

export interface Follower {
  onHistory(history: History): void
  onMessage(message: UiMessage): void
  onStatus(status: ConnectionStatus, problem?: Problem): void
}

export interface Following {
  close(): void
  retry(): void // at once
}

export async function fetchHistory(session: string, before?: string, signal?: AbortSignal): Promise<History> {
  const query = new URLSearchParams({ session_id: session })
  if (before !== undefined) query.set('before', before)
  const answer = fields(await ask<unknown>('GET', '/api/history?' + query, { signal }))
  return {
    messages: list(answer.messages, readMessage).filter((m) => m !== null),
    cursor: str(answer.cursor),
    earlier: str(answer.earlier) || (num(answer.earlier)?.toString() ?? null),
  }
}

const firstWait = 500
const longestWait = 15_000
const tries = 2 // of a socket that does not open, before a stream is tried

export function follow(session: string, follower: Follower): Following {
  const stop = new AbortController()
  let hangUp = () => {} // the connection there is
  let timer: ReturnType<typeof setTimeout> | undefined
  let wait = firstWait
  let closedUnopened = 0
  let generation = 0 // of the connection: what an older one says is not heard
  let cursor: { epoch: string; seq: number } | undefined

  const later = (problem?: Problem) => {
    if (stop.signal.aborted) return
    follower.onStatus('reconnecting', problem)
    clearTimeout(timer)
    timer = setTimeout(go, wait * (0.75 + Math.random() / 2))
    wait = Math.min(wait * 2, longestWait)
  }

  const go = () => {
    clearTimeout(timer)
    hangUp()
    const mine = ++generation
    const current = () => mine === generation && !stop.signal.aborted
    const failed = (error: unknown) => {
      if (!current()) return
      const problem = error instanceof Problem ? error : new Problem(String(error), 0)
      if (problem.again) later(problem)
      else follower.onStatus('failed', problem)
    }
    if (cursor === undefined)
      load(current)
        .then(() => connect(current))
        .catch(failed)
    else connect(current).catch(failed)
  }

  const load = async (current: () => boolean) => {
    const history = await fetchHistory(session, undefined, stop.signal)
    if (!current()) return
    const cut = history.cursor.lastIndexOf('-')
    cursor = { epoch: history.cursor.slice(0, cut), seq: Number(history.cursor.slice(cut + 1)) }
    follower.onHistory(history)
  }

  const connect = async (current: () => boolean) => {
    if (!current() || cursor === undefined) return
    const after = cursor.epoch === '' ? String(cursor.seq) : `${cursor.epoch}-${cursor.seq}`
    const url = await socketURL('/api/events?' + new URLSearchParams({ session_id: session, last_event_id: after }))
    if (!current()) return

    const opened = () => {
      if (!current()) return
      closedUnopened = 0
      wait = firstWait
      follower.onStatus('live')
    }
    const heard = (data: unknown) => {
      if (!current() || cursor === undefined) return
      const message = typeof data === 'string' ? parseMessage(data) : null
      if (message === null) return
      if (message.kind === 'run' && message.phase === 'resync') {
        cursor = undefined
        follower.onStatus('loading')
        go()
        return
      }
      cursor.seq = Math.max(cursor.seq, message.seq)
      follower.onMessage(message)
    }
    hangUp = closedUnopened < tries ? bySocket(url, opened, heard, lost) : byStream(url, opened, heard, lost)

    function lost(wasOpen: boolean) {
      if (!current()) return
      later()
      // A server that is there, and to which no socket opens: something between
      // does not let sockets through.
      if (!wasOpen)
        ask('GET', '/api/health', { signal: stop.signal }).then(
          () => closedUnopened++,
          () => {},
        )
    }
  }

  const online = () => {
    if (cursor !== undefined || timer !== undefined) wake()
  }
  const wake = () => {
    wait = firstWait
    go()
  }
  window.addEventListener('online', online)

  follower.onStatus('loading')
  go()
  return {
    close() {
      stop.abort()
      clearTimeout(timer)
      window.removeEventListener('online', online)
      hangUp()
    },
    retry: wake,
  }
}

type Opener = (
  url: string,
  opened: () => void,
  heard: (data: unknown) => void,
  lost: (wasOpen: boolean) => void,
) => () => void

const bySocket: Opener = (url, opened, heard, lost) => {
  const socket = new WebSocket(url)
  let open = false
  socket.onopen = () => {
    open = true
    opened()
  }
  socket.onmessage = (event) => heard(event.data)
  socket.onclose = () => lost(open)
  return () => {
    socket.onclose = null
    socket.close(1000)
  }
}

// A browser reconnects a stream by itself, but with the ticket it has used up.
const byStream: Opener = (url, opened, heard, lost) => {
  const stream = new EventSource(url.replace(/^ws/, 'http'))
  let open = false
  stream.onopen = () => {
    open = true
    opened()
  }
  stream.onmessage = (event) => heard(event.data)
  stream.onerror = () => {
    stream.close()
    lost(open)
  }
  return () => stream.close()
}
