// Handlers turn a message of the bus into actions, by its kind. They have no state: decisions that depend on earlier
// messages belong to the reducer.

import type { UiMessage } from '../../wire/bus.generated'
import { agentMessage, type ChatAction, type Frame } from './chatReducer'
import type { ChatMessage } from './message'
import {
  fields,
  list,
  num,
  readAskUser,
  readContext,
  readFallback,
  readFiles,
  readPlan,
  readQueue,
  readTask,
  readUndone,
  stamp,
  str,
} from '../../wire/read'

// Handling a message of the conversation with this session. Other sessions are
// sub-agents.
type Handler = (message: UiMessage, session: string) => ChatAction[]

// of names the sub-agent, if the message is from one.
function of(message: UiMessage, session: string): { session?: string } {
  return message.session_id === undefined || message.session_id === session ? {} : { session: message.session_id }
}

function isOurs(message: UiMessage, session: string): boolean {
  return message.session_id === session
}

const handleRun: Handler = (message, session) => {
  const data = fields(message.data)
  switch (message.phase) {
    case 'outcome': {
      const outcome = fields(data.outcome)
      const task = outcome.type === 'task' ? readTask(outcome) : undefined
      return [
        {
          type: 'FINALIZE_MESSAGE',
          ...of(message, session),
          outcome: str(outcome.run_status) || 'completed',
          task,
          at: message.ts_ms,
        },
      ]
    }
    case 'context_usage':
      return [{ type: 'SET_CONTEXT_USAGE', ...of(message, session), usage: readContext(data) }]
    case 'subagent_spawned': {
      const id = str(data.subagent_session_id)
      const agent = str(data.subagent_id)
      if (id === '') return []
      const work = agentMessage(id, 'agent-' + id, agent, message.ts_ms)
      return [
        {
          type: 'ADD_SUBAGENT',
          entry: {
            id,
            parent: of(message, session).session,
            agent,
            task: str(data.task),
            status: 'running',
            startedMs: message.ts_ms,
            message: work,
          },
        },
      ]
    }
    case 'subagent_result':
      return [
        {
          type: 'MARK_SUBAGENT_DONE',
          id: str(data.subagent_session_id),
          status: str(fields(data.outcome).run_status) || 'completed',
          at: message.ts_ms,
        },
      ]
    case 'plan_update':
      return [{ type: 'SET_PLAN', ...of(message, session), plan: readPlan(data.plan) }]
    case 'change_report':
      return [
        {
          type: 'ADD_CHANGE_REPORT',
          ...of(message, session),
          run: str(data.run) || undefined,
          files: readFiles(data.files),
          truncated: num(data.truncated_count) ?? 0,
        },
      ]
    case 'changes_undone':
      return [
        {
          type: 'CHANGES_UNDONE',
          undone: { run: str(data.run), files: readUndone(data.files), problem: str(data.problem) || undefined },
        },
      ]
    default: // useSseConnection handles sync and resync
      return []
  }
}

const handleMessage: Handler = (message, session) => {
  const data = fields(message.data)
  const from = str(data.from) || message.agent_id || ''
  const said: ChatMessage = {
    role: data.role === 'user' ? 'user' : 'agent',
    from,
    to: str(data.to),
    text: message.text ?? '',
    timestamp: stamp(message.ts_ms),
    timestampMs: message.ts_ms,
    id: message.id,
    session: message.session_id ?? session,
  }
  if (said.role === 'user') {
    if (!isOurs(message, session)) return [] // the task of a sub-agent is shown in the tree
    const inputId = str(data.input_id) || undefined
    const images =
      inputId === undefined
        ? []
        : Array.from({ length: Math.min(num(data.images) ?? 0, 8) }, (_, i) => `${inputId}#${i}`)
    return [{ type: 'PUSH_MESSAGE', message: { ...said, inputId, ...(images.length > 0 ? { images } : {}) } }]
  }
  const state = str(data.retry)
  const retry = state === '' ? {} : { retry: { id: message.id, state } }
  return [{ type: 'SAY', ...of(message, session), message: said, notice: from === 'system', ...retry }]
}

const handleActivity: Handler = (message, session) => {
  const data = fields(message.data)
  const text = message.text ?? ''
  if (message.phase === 'done') return [{ type: 'ACTIVITY_DONE', ...of(message, session), text }]
  return [
    {
      type: 'SET_ACTIVITY',
      ...of(message, session),
      text,
      status: str(data.status),
      agent: message.agent_id ?? '',
      model: str(data.model) || undefined,
      at: message.ts_ms,
      seq: message.seq,
    },
  ]
}

const handleQueue: Handler = (message, session) => {
  if (!isOurs(message, session)) return []
  const data = fields(message.data)
  return [
    {
      type: 'SET_QUEUE',
      agent: message.agent_id ?? '',
      items: readQueue(data.items),
      withdrawn: str(data.withdrawn),
      at: message.ts_ms,
      seq: message.seq,
    },
  ]
}

const handleToken: Handler = (message, session) => {
  const thinking = fields(message.data).thinking === true
  const done = message.phase === 'done'
  const append: ChatAction = {
    type: 'APPEND_TOKEN',
    ...of(message, session),
    text: message.text ?? '',
    thinking,
    done,
    at: message.ts_ms,
  }
  return thinking ? [{ type: 'SET_THINKING', ...of(message, session), thinking: true }, append] : [append]
}

const handleTextSegment: Handler = (message, session) => [
  { type: 'PUSH_TEXT_SEGMENT', ...of(message, session), text: message.text ?? '' },
]

const handleAskUser: Handler = (message, session) => {
  const asked = readAskUser(message.data)
  if (asked.question_id === '') return []
  return [
    {
      type: 'SET_ASK_USER',
      card: { ...asked, agent: message.agent_id ?? '', session: message.session_id ?? session },
      at: message.ts_ms,
    },
  ]
}

const handleWidgetResolved: Handler = (message) => {
  const data = fields(message.data)
  return [{ type: 'RESOLVE_CARDS', ids: [str(data.widget_id), ...list(data.widget_ids, str)], at: message.ts_ms }]
}

const handleModelFallback: Handler = (message, session) => [
  { type: 'SET_MODEL_FALLBACK', ...of(message, session), fallback: readFallback(message.data) },
]

const handleToolProgress: Handler = (message, session) => {
  const data = fields(message.data)
  return [
    {
      type: 'APPEND_TOOL_OUTPUT',
      ...of(message, session),
      id: str(data.block_id),
      tool: str(data.tool),
      line: str(data.line),
    },
  ]
}

const handleContentBlock: Handler = (message, session) => {
  const data = fields(message.data)
  const id = str(data.block_id)
  if (message.phase === 'start') {
    const tool = {
      type: 'tool_use' as const,
      id,
      tool: str(data.tool),
      args: data.args,
      status: 'running',
      summary: '',
      output: '',
      cut: 0,
      startedMs: message.ts_ms,
    }
    return [{ type: 'ADD_TOOL', ...of(message, session), tool }]
  }
  return [
    {
      type: 'UPDATE_TOOL',
      ...of(message, session),
      id,
      status: str(data.status),
      summary: str(data.summary),
      ranMs: num(data.duration_ms),
      at: message.ts_ms,
    },
  ]
}

const handleTurnComplete: Handler = (message, session) => {
  const data = fields(message.data)
  return [
    {
      type: 'COMPLETE_TURN',
      ...of(message, session),
      durationMs: num(data.duration_ms),
      contextTokens: num(data.context_tokens),
    },
  ]
}

export const sseEventHandlers: Record<string, Handler> = {
  run: handleRun,
  message: handleMessage,
  activity: handleActivity,
  queue: handleQueue,
  token: handleToken,
  text_segment: handleTextSegment,
  ask_user: handleAskUser,
  widget_resolved: handleWidgetResolved,
  model_fallback: handleModelFallback,
  tool_progress: handleToolProgress,
  content_block: handleContentBlock,
  turn_complete: handleTurnComplete,
}

// frameOf returns the actions of a message. An unknown kind has none; a message that cannot be handled is logged and
// skipped.
export function frameOf(message: UiMessage, session: string): Frame {
  let actions: ChatAction[] = []
  try {
    actions = sseEventHandlers[message.kind]?.(message, session) ?? []
  } catch (error) {
    console.warn('A message could not be handled.', message, error)
  }
  return { seq: message.seq, actions }
}
