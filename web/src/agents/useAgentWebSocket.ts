import { useCallback, useEffect, useReducer, useRef, useState } from 'react'
import { Problem, socketURL } from '../wire/api'
import { consoleReducer, nothing, parseFrame, type ChatMessage, type ConsoleCard } from './frames'

export type SocketStatus = 'connecting' | 'connected' | 'disconnected' | 'error'

export interface AgentWebSocket {
  messages: ChatMessage[]
  sendMessage: (content: string) => void
  status: SocketStatus
  error: string | null
  // Beyond the document: what waits for a person, whether an answer is under
  // way, and a way back after the last attempt.
  cards: ConsoleCard[]
  busy: boolean
  respond: (answer: { type: string; id: string } & Record<string, unknown>) => void
  reconnect: () => void
}

const attempts = 3
const firstWait = 1_000 // milliseconds; doubled each time
const steady = 30_000 // a connection that lasted this long counts as one that worked

// Closed on purpose: by us, because the agent or the server stops, or because the
// session was halted or the token ended. To come back would change nothing.
const onPurpose = [1000, 1001, 1008]

// useAgentWebSocket talks to one agent for as long as it is enabled. Messages are
// kept here and nowhere else; a new connection is a new conversation.
export function useAgentWebSocket(agentId: string, enabled: boolean): AgentWebSocket {
  const [state, dispatch] = useReducer(consoleReducer, nothing)
  const [status, setStatus] = useState<SocketStatus>('disconnected')
  const [error, setError] = useState<string | null>(null)
  const [round, setRound] = useState(0)
  const socket = useRef<WebSocket>(undefined)

  useEffect(() => dispatch({ type: 'reset' }), [agentId])

  useEffect(() => {
    if (!enabled) {
      setStatus('disconnected')
      setError(null)
      return
    }
    let gone = false
    let failures = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    let ws: WebSocket | undefined

    const fail = (why: string) => {
      if (failures >= attempts) {
        setStatus('error')
        setError(why)
        return
      }
      setStatus('connecting')
      timer = setTimeout(connect, firstWait * 2 ** failures++)
    }

    const connect = async () => {
      setStatus('connecting')
      try {
        const url = await socketURL(`/api/v1/agents/${encodeURIComponent(agentId)}/ws`, agentId)
        if (gone) return
        ws = new WebSocket(url)
      } catch (problem) {
        if (gone) return
        const why = problem instanceof Error ? problem.message : String(problem)
        if (problem instanceof Problem && !problem.again) failures = attempts
        fail(why)
        return
      }
      const mine = ws
      let since = Infinity
      socket.current = mine
      mine.onopen = () => {
        since = Date.now()
        setStatus('connected')
        setError(null)
        dispatch({ type: 'joined', at: Date.now() })
      }
      mine.onmessage = ({ data }: MessageEvent) => {
        failures = 0
        const frame = parseFrame(data)
        if (frame === null) console.warn('not a frame of the debug console', data)
        else dispatch({ type: 'frame', frame, at: Date.now() })
      }
      mine.onclose = ({ code, reason }: CloseEvent) => {
        if (gone) return
        socket.current = undefined
        dispatch({ type: 'lost', at: Date.now() })
        if (onPurpose.includes(code)) {
          setStatus('disconnected')
          setError(
            code === 1000
              ? null
              : reason ||
                  (code === 1001
                    ? 'The agent was stopped, or the server stops.'
                    : 'The server ended the conversation.'),
          )
          return
        }
        if (Date.now() - since >= steady) failures = 0
        fail('The connection was lost.')
      }
    }

    void connect()
    return () => {
      gone = true
      clearTimeout(timer)
      socket.current = undefined
      ws?.close(1000)
    }
  }, [agentId, enabled, round])

  const send = useCallback((frame: object): boolean => {
    const ws = socket.current
    if (ws?.readyState !== WebSocket.OPEN) return false
    ws.send(JSON.stringify(frame))
    return true
  }, [])

  const sendMessage = useCallback(
    (content: string) => {
      if (content.trim() === '') return
      if (send({ type: 'message', content })) dispatch({ type: 'sent', content, at: Date.now() })
      else setError('This was not sent: there is no connection.')
    },
    [send],
  )

  const respond = useCallback(
    (answer: object) => {
      if (!send(answer)) setError('This was not sent: there is no connection.')
    },
    [send],
  )

  const reconnect = useCallback(() => setRound((n) => n + 1), [])

  return {
    messages: state.messages,
    sendMessage,
    status,
    error,
    cards: state.cards,
    busy: state.pending > 0,
    respond,
    reconnect,
  }
}
