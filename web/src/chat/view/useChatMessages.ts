import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from 'react'
import type { UiMessage } from '../../wire/bus.generated'
import { chatReducer, initialState, type ChatAction, type ChatState, type Frame } from '../model/chatReducer'
import { fetchHistory, type HistoryPage } from '../../wire/follow'
import { frameOf } from '../model/sseEventHandlers'
import { useSseConnection, type Connection } from './useSseConnection'

export interface Chat {
  state: ChatState
  connection: Connection
  loadEarlier: () => void
  earlier: { loading: boolean; error?: unknown }
}

// useChatMessages is the current state of a conversation. onMessage is called with every message, for state outside the
// fold.
export function useChatMessages(session: string, onMessage?: (message: UiMessage) => void): Chat {
  const [state, dispatch] = useReducer(chatReducer, session, initialState)
  const batch = useBatch(dispatch)
  const hear = useRef(onMessage)
  useEffect(() => {
    hear.current = onMessage
  })

  const handlers = useMemo(
    () => ({
      onHistory(history: HistoryPage) {
        batch.drop() // it is in the history
        dispatch({
          type: 'LOAD_HISTORY',
          frames: history.messages.map((m) => frameOf(m, session)),
          earlier: history.earlier,
        })
      },
      onMessage(message: UiMessage) {
        batch.add(frameOf(message, session))
        hear.current?.(message)
      },
    }),
    [session, batch],
  )
  const connection = useSseConnection(session, handlers)
  const [earlier, setEarlier] = useState<{ loading: boolean; error?: unknown }>({ loading: false })

  const before = state.earlier
  const asked = useRef<string | null>(null)
  const loadEarlier = useCallback(() => {
    if (before === null || asked.current === before) return
    asked.current = before
    setEarlier({ loading: true })
    fetchHistory(session, before)
      .then((page) => {
        dispatch({
          type: 'PREPEND_HISTORY',
          frames: page.messages.map((m) => frameOf(m, session)),
          earlier: page.earlier,
        })
        setEarlier({ loading: false })
      })
      .catch((error: unknown) => setEarlier({ loading: false, error }))
      .finally(() => (asked.current = null))
  }, [session, before])

  return { state, connection, loadEarlier, earlier }
}

interface Batch {
  add(frame: Frame): void
  drop(): void
}

// useBatch dispatches frames once per animation frame. A hidden tab has no animation frames and uses a slow timer.
function useBatch(dispatch: (action: ChatAction) => void): Batch {
  const batch = useMemo(() => {
    let frames: Frame[] = []
    let cancel: (() => void) | undefined
    const flush = () => {
      cancel = undefined
      const ready = frames
      frames = []
      if (ready.length > 0) dispatch({ type: 'RECEIVE', frames: ready })
    }
    const schedule = () => {
      if (document.visibilityState === 'visible') {
        const id = requestAnimationFrame(flush)
        return () => cancelAnimationFrame(id)
      }
      const id = setTimeout(flush, 250)
      return () => clearTimeout(id)
    }
    // A requested animation frame does not come after the tab is hidden.
    const turn = () => {
      if (cancel === undefined) return
      cancel()
      cancel = schedule()
    }
    return {
      add(frame: Frame) {
        frames.push(frame)
        cancel ??= schedule()
      },
      drop() {
        frames = []
      },
      watch() {
        document.addEventListener('visibilitychange', turn)
        return () => {
          document.removeEventListener('visibilitychange', turn)
          cancel?.()
          cancel = undefined
        }
      },
    }
  }, [dispatch])
  useEffect(() => batch.watch(), [batch])
  return batch
}
