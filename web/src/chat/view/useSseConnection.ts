import { useCallback, useEffect, useRef, useState } from 'react'
import type { Problem } from '../../wire/api'
import { follow, type ConnectionStatus, type Follower, type Following } from '../../wire/follow'

export interface Connection {
  status: ConnectionStatus
  problem?: Problem
  retry: () => void
}

// useSseConnection follows a conversation while it is shown. It uses a socket,
// since a browser allows six streams per host and users may have more tabs. If
// no socket can be opened, it uses a stream.
export function useSseConnection(session: string, { onHistory, onMessage }: Omit<Follower, 'onStatus'>): Connection {
  const [state, setState] = useState<{ status: ConnectionStatus; problem?: Problem }>({ status: 'loading' })
  const following = useRef<Following | null>(null)
  useEffect(() => {
    const made = follow(session, { onHistory, onMessage, onStatus: (status, problem) => setState({ status, problem }) })
    following.current = made
    return () => made.close()
  }, [session, onHistory, onMessage])
  const retry = useCallback(() => following.current?.retry(), [])
  return { ...state, retry }
}
