import { useCallback, useEffect, useReducer, useRef, useState } from 'react'
import { ofProject } from '../files/queries'
import { keepConnected, type Cause, type ReconnectingSocket } from '../wire/socket'
import { consoleReducer, nothing, parseFrame, type ChatMessage, type ConsoleCard } from './frames'

export type SocketStatus = 'connecting' | 'connected' | 'disconnected' | 'error'

export interface AgentWebSocket {
  messages: ChatMessage[]
  sendMessage: (content: string) => void
  status: SocketStatus
  error: string | null
  // Beyond the document: open cards, whether an answer is being sent, and a way to reconnect after the last attempt.
  cards: ConsoleCard[]
  busy: boolean
  respond: (answer: { type: string; id: string } & Record<string, unknown>) => void
  reconnect: () => void
}

const attempts = 3
const firstWait = 1_000 // milliseconds; doubled each time

// The server closes on purpose because the agent or the server stops, the session was halted, or the token ended. A
// new connection would end the same way.
const onPurpose: Record<number, string> = {
  1000: '',
  1001: 'The agent was stopped, or the server is shutting down.',
  1008: 'The server ended the conversation.',
}

function wait(failures: number, { problem, code = 0 }: Cause): number | undefined {
  const refused = problem !== undefined && !problem.again
  return refused || code in onPurpose || failures >= attempts ? undefined : firstWait * 2 ** failures
}

// useAgentWebSocket connects to one agent while it is enabled. Messages are
// kept only here; a new connection is a new conversation.
export function useAgentWebSocket(agentId: string, enabled: boolean, project = ''): AgentWebSocket {
  const [state, dispatch] = useReducer(consoleReducer, nothing)
  const [status, setStatus] = useState<SocketStatus>('disconnected')
  const [error, setError] = useState<string | null>(null)
  const socket = useRef<ReconnectingSocket>(undefined)

  useEffect(() => dispatch({ type: 'reset' }), [agentId, project])

  useEffect(() => {
    if (!enabled) {
      setStatus('disconnected')
      setError(null)
      return
    }
    const ended = ({ problem, code = 0, reason }: Cause) => {
      const meant = onPurpose[code]
      setStatus(meant === undefined ? 'error' : 'disconnected')
      setError(
        meant === undefined ? (problem?.message ?? 'The connection was lost.') : (meant && (reason || meant)) || null,
      )
    }
    const made = keepConnected({
      agent: agentId,
      path: () => `/api/v1/agents/${encodeURIComponent(agentId)}/ws${ofProject(project)}`,
      wait,
      onState(state, cause) {
        if (state === 'lost' || state === 'ended') dispatch({ type: 'lost', at: Date.now() })
        if (state === 'ended') return ended(cause)
        setStatus(state === 'open' ? 'connected' : 'connecting')
        if (state !== 'open') return
        setError(null)
        dispatch({ type: 'joined', at: Date.now() })
      },
      onMessage(data) {
        const frame = parseFrame(data)
        if (frame === null) console.warn('not a frame of the debug console', data)
        else dispatch({ type: 'frame', frame, at: Date.now() })
      },
    })
    socket.current = made
    return () => {
      socket.current = undefined
      made.close()
    }
  }, [agentId, enabled, project])

  const send = useCallback((frame: object) => socket.current?.send(frame) ?? false, [])

  const sendMessage = useCallback(
    (content: string) => {
      if (content.trim() === '') return
      if (send({ type: 'message', content })) dispatch({ type: 'sent', content, at: Date.now() })
      else setError('Your message was not sent: there is no connection.')
    },
    [send],
  )

  const respond = useCallback(
    (answer: object) => {
      if (!send(answer)) setError('Your answer was not sent: there is no connection.')
    },
    [send],
  )

  const reconnect = useCallback(() => socket.current?.reconnect(), [])

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
