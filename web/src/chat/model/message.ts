// ChatMessage is the rendered message: the model of document 004, with additions from Parley's bus.

import type { AskUser, FileChange, ModelFallback, Plan, Task } from '../../wire/bus.generated'

export interface ChatMessage {
  role: 'user' | 'agent'
  from?: string // agent ID; system for what nobody said
  to?: string // target agent ID
  text: string // primary text content
  timestamp: string
  timestampMs?: number

  // Lifecycle
  isGenerating?: boolean
  isThinking?: boolean

  // Activity (tool use)
  activitySummary?: string // headline: "Reading file.ts"
  activityEntries?: string[] // what was done, in order
  toolCount?: number

  // Context
  contextTokens?: number
  messageCount?: number
  durationMs?: number

  // Rich content
  images?: string[]
  subagentTree?: SubagentTreeEntry[]
  content?: ContentBlock[] // everything of the message, in order

  // Legacy, as the document has them
  segments?: MessageSegment[]
  liveText?: string

  // Ours
  id: string // stable: the same after a reload
  session: string // whose this is: a sub-agent's differs from the conversation's
  inputId?: string // of what a person said
  outcome?: string // of the run: completed, cancelled, failed, …
  statusSinceMs?: number // when what it is doing began
  turns?: number[] // when each began
  model?: string // that answers, by the log of the run
  forkedFrom?: string // a mark, no message: the session whose messages are before it
  waitedMs?: number // of its duration, for people to answer
}

interface MessageSegment {
  text: string
}

// A sub-agent works on something for a run; its own are below it.
export interface SubagentTreeEntry {
  id: string // its session
  parent?: string // the session it works for; none: the conversation's
  agent: string
  task: string
  status: string // running, or how it ended
  startedMs: number
  endedMs?: number
  message: ChatMessage // what it does
}

export interface ToolUse {
  type: 'tool_use'
  id: string
  tool: string
  args: unknown
  status: string // running, done, failed, denied, cancelled, unknown, blocked
  summary: string
  output: string // the last of what it printed
  cut: number // characters of output that are no longer here
  startedMs: number
  endedMs?: number
  ranMs?: number // without the time that a person took to allow it
  turn: number // from 1
}

export type ContentBlock =
  | { type: 'thinking'; text: string; open: boolean; startedMs: number; endedMs?: number }
  | { type: 'text'; text: string; open: boolean }
  | { type: 'cut' } // the text before it broke off, and goes on after it
  | ToolUse
  | { type: 'plan'; plan: Plan }
  | { type: 'change_report'; run?: string; files: FileChange[]; truncated: number }
  | { type: 'finalize_task'; task: Task }
  | { type: 'model_fallback'; fallback: ModelFallback }
  | { type: 'explanation'; text: string } // of what a person is asked to approve
  | { type: 'notice'; text: string; retry?: Retry }

// A Retry is about a model that did not answer. Later messages of the bus about the same retry have the same id.
export interface Retry {
  id: string
  state: string // retrying, answered, gave_up, ended
}

// A Card is something only a person can decide.
export interface Card extends AskUser {
  agent: string
  session: string
  explained?: boolean // what it would do, in the message above it
}

// badEnds are the outcomes of runs that did not come to their end.
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
