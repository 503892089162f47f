import type { Question } from '../wire/native.generated'

// The debug console of document 000 without its socket: a reducer from frames to a list of messages. See
// docs/dialects/debugconsole.md.

export interface ChatMessage {
  id: string
  type: 'user' | 'assistant' | 'tool' | 'error' | 'halt'
  content: string
  toolName?: string
  requestId?: string
  timestamp: number
  streaming?: boolean // true while chunks are still arriving
  retrying?: string // the problem, while the model call is retried
}

// A ConsoleCard needs an answer from a person. The document has no cards: they are additional frames.
export type ConsoleCard = { id: string; requestId: string; agent?: string; expiresAt?: string } & (
  | { kind: 'approval'; tool: string; command: string; why?: string; similar?: string; explanation?: string }
  | { kind: 'question'; questions: Question[] }
  | { kind: 'call'; tool: string; message: string }
)

export interface ConsoleState {
  messages: ChatMessage[]
  cards: ConsoleCard[]
  pending: number // sent messages without an end
  made: number // number of messages so far, for their ids
}

export const nothing: ConsoleState = { messages: [], cards: [], pending: 0, made: 0 }

type ConsoleAction =
  | { type: 'sent'; content: string; at: number }
  | { type: 'frame'; frame: Frame; at: number }
  | { type: 'lost'; at: number } // the connection was lost, and with it the conversation
  | { type: 'joined'; at: number } // a new connection
  | { type: 'reset' }

// A Frame is an object with a type; every other field is checked before use.
export type Frame = { type: string } & Record<string, unknown>

// parseFrame returns null if the data is not a frame.
export function parseFrame(data: unknown): Frame | null {
  try {
    const frame: unknown = JSON.parse(String(data))
    if (typeof frame === 'object' && frame !== null && typeof (frame as Frame).type === 'string') return frame as Frame
  } catch {
    // not JSON
  }
  return null
}

export function consoleReducer(state: ConsoleState, action: ConsoleAction): ConsoleState {
  switch (action.type) {
    case 'sent':
      return push(
        { ...state, pending: state.pending + 1 },
        { type: 'user', content: action.content, timestamp: action.at },
      )
    case 'frame':
      return onFrame(state, action.frame, action.at)
    case 'lost':
      return { ...settled(retried(state, '.')), cards: [], pending: 0 }
    case 'joined':
      if (state.messages.length === 0) return state
      return push(state, {
        type: 'tool',
        content: 'A new conversation starts here: the agent does not know the messages above.',
        timestamp: action.at,
      })
    case 'reset':
      return nothing
  }
}

function onFrame(before: ConsoleState, frame: Frame, at: number): ConsoleState {
  const requestId = text(frame.request_id)
  const failed = frame.type === 'error' || frame.type === 'session_halt'
  const state = frame.type === 'problem' ? before : retried(before, failed ? '.' : '; a retry succeeded.', requestId)
  const tool = text(frame.tool_name)
  // Text after a tool is a bubble below the line of the tool.
  const line = (content: string) =>
    push(settled(state, requestId), { type: 'tool', content, toolName: tool, requestId, timestamp: at })
  switch (frame.type) {
    case 'chunk':
      return onChunk(state, requestId, text(frame.content), frame.done === true, at)
    case 'tool_executed': // the server sends it when the call has ended well
      return line(`Calling \`${tool}\`... done`)
    case 'tool_failed':
      return line(`Tool \`${tool}\` failed: ${text(frame.reason)}`)
    case 'tool_blocked':
      return line(`Tool \`${tool}\` blocked: ${text(frame.reason)}`)
    case 'problem':
      return onProblem(state, requestId, frame, at)
    case 'error':
      return push(ended(settled(state, requestId)), {
        type: 'error',
        content: text(frame.message),
        requestId,
        timestamp: at,
      })
    case 'session_halt':
      return push(
        { ...settled(state), pending: 0, cards: [] },
        { type: 'halt', content: text(frame.reason), requestId, timestamp: at },
      )
    case 'approval_request':
    case 'question':
    case 'tool_call_unknown': {
      const card = cardOf(frame, requestId)
      return { ...state, cards: [...state.cards.filter((other) => other.id !== card.id), card] }
    }
    case 'approval_explained':
      return {
        ...state,
        cards: state.cards.map((card) =>
          card.kind === 'approval' && card.id === frame.id ? { ...card, explanation: text(frame.text) } : card,
        ),
      }
    case 'approval_closed':
    case 'question_closed':
    case 'tool_call_resolved':
      return { ...state, cards: state.cards.filter((card) => card.id !== frame.id) }
  }
  return state // an unknown type, perhaps of a later server
}

// The chunks of a message between two tools are one bubble, created by the
// first chunk even if it is also the last. A last chunk without text ends the
// message and adds no bubble.
function onChunk(state: ConsoleState, requestId: string, content: string, done: boolean, at: number): ConsoleState {
  const after = done ? ended(state) : state
  const bubble = state.messages.findLastIndex(
    (message) => message.type === 'assistant' && message.requestId === requestId && message.streaming,
  )
  const shown = state.messages.some((message) => message.requestId === requestId)
  if (bubble < 0 && done && content === '' && shown) return after
  if (bubble < 0) return push(after, { type: 'assistant', content, requestId, timestamp: at, streaming: !done })
  return {
    ...after,
    messages: state.messages.map((message, i) =>
      i === bubble ? { ...message, content: message.content + content, streaming: !done } : message,
    ),
  }
}

// A problem is one line. While the model call is retried, the next problem of the message replaces it.
function onProblem(state: ConsoleState, requestId: string, frame: Frame, at: number): ConsoleState {
  const retrying = frame.retrying === true ? text(frame.problem) : undefined
  const line = { type: 'tool' as const, content: text(frame.message), requestId, timestamp: at, retrying }
  const open = state.messages.findLastIndex((m) => m.retrying !== undefined && m.requestId === requestId)
  if (open < 0) return push(state, line)
  return { ...state, messages: state.messages.with(open, { ...state.messages[open]!, ...line }) }
}

// retried replaces a message's line "retrying" by its outcome.
function retried(state: ConsoleState, end: string, requestId?: string): ConsoleState {
  const over = (message: ChatMessage) =>
    message.retrying !== undefined && (requestId === undefined || message.requestId === requestId)
  if (!state.messages.some(over)) return state
  return {
    ...state,
    messages: state.messages.map((message) =>
      over(message) ? { ...message, content: message.retrying + end, retrying: undefined } : message,
    ),
  }
}

function cardOf(frame: Frame, requestId: string): ConsoleCard {
  const common = {
    id: text(frame.id),
    requestId,
    agent: text(frame.agent) || undefined,
    expiresAt: text(frame.expires_at) || undefined,
  }
  if (frame.type === 'question')
    return {
      ...common,
      kind: 'question',
      questions: Array.isArray(frame.questions) ? (frame.questions as Question[]) : [],
    }
  if (frame.type === 'approval_request')
    return {
      ...common,
      kind: 'approval',
      tool: text(frame.tool_name),
      command: text(frame.command),
      why: text(frame.why) || undefined,
      similar: text(frame.similar) || undefined,
    }
  return { ...common, kind: 'call', tool: text(frame.tool_name), message: text(frame.message) }
}

function push(state: ConsoleState, message: Omit<ChatMessage, 'id'>): ConsoleState {
  return { ...state, made: state.made + 1, messages: [...state.messages, { id: `m${state.made + 1}`, ...message }] }
}

// settled closes the bubbles of a message that wait for more.
function settled(state: ConsoleState, requestId?: string): ConsoleState {
  const over = (message: ChatMessage) =>
    message.streaming && (requestId === undefined || message.requestId === requestId)
  if (!state.messages.some(over)) return state
  return {
    ...state,
    messages: state.messages.map((message) => (over(message) ? { ...message, streaming: false } : message)),
  }
}

function ended(state: ConsoleState): ConsoleState {
  return { ...state, pending: Math.max(0, state.pending - 1) }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
