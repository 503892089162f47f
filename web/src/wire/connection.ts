import { useSyncExternalStore } from 'react'

// How it stands with the socket that everything shares, for people to know.
export interface Connection {
  state: 'connecting' | 'online' | 'offline'
  since?: Date // when it was lost
  again: () => void // tries at once what would be tried later
}

let connection: Connection = { state: 'connecting', again: () => {} }
const watchers = new Set<() => void>()

// stands sets the state of the shared socket.
export function stands(state: Connection['state'], again = connection.again): void {
  // One that was never there counts from the first attempt that failed.
  const since = state === 'online' ? undefined : (connection.since ?? (state === 'offline' ? new Date() : undefined))
  connection = { state, since, again }
  for (const watcher of watchers) watcher()
}

// onReturn calls a function whenever the connection is back after it was lost.
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
