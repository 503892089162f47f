// Following a conversation: its history, then the bus from the end of the history on, for as long as it is shown. Lost
// messages are loaded again.

import { ask, type Problem } from './api'
import type { History, UiMessage } from './bus.generated'
import { fields, list, num, parseMessage, readMessage, str } from './read'
import { forever, keepConnected } from './socket'

export type ConnectionStatus =
  | 'loading' // history is fetched
  | 'live'
  | 'reconnecting' // the connection is lost, and is retried
  | 'failed' // a retry would not help

// A HistoryPage holds checked messages of the bus.
export interface HistoryPage extends History {
  messages: UiMessage[]
}

export interface Follower {
  onHistory(history: HistoryPage): void
  onMessage(message: UiMessage): void
  onStatus(status: ConnectionStatus, problem?: Problem): void
}

export interface Following {
  close(): void
  retry(): void // without waiting
}

export async function fetchHistory(session: string, before?: string, signal?: AbortSignal): Promise<HistoryPage> {
  const query = new URLSearchParams({ session_id: session })
  if (before !== undefined) query.set('before', before)
  const answer = fields(await ask<unknown>('GET', '/api/history?' + query, { signal }))
  return {
    messages: list(answer.messages, readMessage).filter((m) => m !== null),
    cursor: str(answer.cursor),
    earlier: str(answer.earlier) || (num(answer.earlier)?.toString() ?? null),
  }
}

// follow reads the bus over a socket, since a browser allows six streams per host and users may have more tabs. If no
// socket can be opened, it uses a stream.
export function follow(session: string, follower: Follower): Following {
  let cursor: { epoch: string; seq: number } | undefined

  const load = async (signal: AbortSignal) => {
    const history = await fetchHistory(session, undefined, signal)
    const cut = history.cursor.lastIndexOf('-')
    if (signal.aborted) throw signal.reason
    follower.onHistory(history)
    return (cursor = { epoch: history.cursor.slice(0, cut), seq: Number(history.cursor.slice(cut + 1)) })
  }

  follower.onStatus('loading')
  const socket = keepConnected({
    resumes: true,
    stream: true,
    wait: (failures, { problem }) => (problem !== undefined && !problem.again ? undefined : forever(failures)),
    async path(signal) {
      const { epoch, seq } = cursor ?? (await load(signal))
      const after = epoch === '' ? String(seq) : `${epoch}-${seq}`
      return '/api/events?' + new URLSearchParams({ session_id: session, last_event_id: after })
    },
    onState(state, { problem }) {
      if (state === 'open') follower.onStatus('live')
      else if (state === 'lost') follower.onStatus('reconnecting', problem)
      else if (state === 'ended') follower.onStatus('failed', problem)
    },
    onMessage(data) {
      const message = parseMessage(data)
      if (message === null || cursor === undefined) return
      if (message.kind === 'run' && message.phase === 'resync') {
        cursor = undefined
        follower.onStatus('loading')
        socket.reconnect()
        return
      }
      cursor.seq = Math.max(cursor.seq, message.seq)
      follower.onMessage(message)
    },
  })
  return { close: socket.close, retry: socket.reconnect }
}
