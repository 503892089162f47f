// ChatMessage is the rendered message: the model of document 004, with additions from Parley's bus.

import type { AskUser, FileChange, ModelFallback, Plan, Task } from '../../wire/bus.generated'

export interface ChatMessage {
  role: 'user' | 'agent'
  from?: string // agent ID; system for notices
  to?: string // target agent ID
  text: string // primary text content
  timestamp: string
  timestampMs?: number

  // Lifecycle
  isGenerating?: boolean
  isThinking?: boolean

  // Activity (tool use)
  activitySummary?: string // headline: "Reading file.ts"
  activityEntries?: string[] // actions, in order
  toolCount?: number

  // Context
  contextTokens?: number
  messageCount?: number
  durationMs?: number

  // Rich content
  images?: string[]
  subagentTree?: SubagentTreeEntry[]
  content?: ContentBlock[] // all content of the message, in order

  // Legacy, as the document has them
  segments?: MessageSegment[]
  liveText?: string

  // Additions of the console
  id: string // stable: the same after a reload
  session: string // the session it belongs to; for a sub-agent not the conversation's
  inputId?: string // of a user message
  outcome?: string // of the run: completed, cancelled, failed, …
  statusSinceMs?: number // when the current activity began
  turns?: number[] // when each turn began
  model?: string // that answers, according to the log of the run
  forkedFrom?: string // set for a divider: the session whose messages are before it
  waitedMs?: number // the part of its duration that people took to answer
}

interface MessageSegment {
  text: string
}

// A sub-agent works on a task for a run; its own sub-agents are below it.
export interface SubagentTreeEntry {
  id: string // its session
  parent?: string // the session that it works for; none: the conversation's
  agent: string
  task: string
  status: string // running, or how it ended
  startedMs: number
  endedMs?: number
  message: ChatMessage // its output
}

export interface ToolUse {
  type: 'tool_use'
  id: string
  tool: string
  args: unknown
  status: string // running, done, failed, denied, cancelled, unknown, blocked
  summary: string
  output: string // the end of its output
  cut: number // number of characters that were dropped from output
  startedMs: number
  endedMs?: number
  ranMs?: number // without the time that a person took to approve it
  turn: number // from 1
}

export type ContentBlock =
  | { type: 'thinking'; text: string; open: boolean; startedMs: number; endedMs?: number }
  | { type: 'text'; text: string; open: boolean }
  | { type: 'cut' } // the text before it broke off, and continues after it
  | ToolUse
  | { type: 'plan'; plan: Plan }
  | { type: 'change_report'; run?: string; files: FileChange[]; truncated: number }
  | { type: 'finalize_task'; task: Task }
  | { type: 'model_fallback'; fallback: ModelFallback }
  | { type: 'explanation'; text: string } // explains an open approval
  | { type: 'notice'; text: string; retry?: Retry }

// A Retry reports a model that did not answer. Later messages of the bus about the same retry have the same id.
export interface Retry {
  id: string
  state: string // retrying, answered, gave_up, ended
}

// A Card needs a decision by a person.
export interface Card extends AskUser {
  agent: string
  session: string
  explained?: boolean // the message above it has an explanation
}

// badEnds are the outcomes of runs that did not complete.
export const badEnds = new Set(['failed', 'denied', 'interrupted', 'halted', 'cancelled'])

type MessagePhase = 'thinking' | 'working' | 'streaming' | 'done'

// Status texts that carry no information worth showing.
const transient = new Set(['Thinking...', 'Model loading...', 'Running', 'Working...', 'Idle'])

export function isTransient(status: string): boolean {
  return transient.has(status)
}

export function getMessagePhase(
  message: Pick<ChatMessage, 'isGenerating' | 'isThinking' | 'activitySummary'>,
): MessagePhase {
  if (!message.isGenerating) return 'done'
  if (message.isThinking) return 'thinking'
  if (message.activitySummary !== undefined && !isTransient(message.activitySummary)) return 'working'
  return 'streaming'
}
