import { useSyncExternalStore } from 'react'

// The state of the shared socket, as the user sees it.
export interface Connection {
  state: 'connecting' | 'online' | 'offline'
  since?: Date // when it was lost
  again: () => void // retries at once
}

let connection: Connection = { state: 'connecting', again: () => {} }
const watchers = new Set<() => void>()

// stands sets the state of the shared socket.
export function stands(state: Connection['state'], again = connection.again): void {
  // If it was never connected, the time of the first failed attempt counts.
  const since = state === 'online' ? undefined : (connection.since ?? (state === 'offline' ? new Date() : undefined))
  connection = { state, since, again }
  for (const watcher of watchers) watcher()
}

// onReturn calls a function whenever a lost connection is back.
export function onReturn(tell: () => void): () => void {
  let { state, since } = connection
  return watch(() => {
    if (connection.state === 'online' && state !== 'online' && since !== undefined) tell()
    ;({ state, since } = connection)
  })
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

export function useConnection(): Connection {
  return useSyncExternalStore(watch, () => connection)
}
