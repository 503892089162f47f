// What the event bus says, as docs/dialects/eventbus.md has it. The server may be
// newer than this page: nothing here is believed before it is read (see read.ts).

export interface UiMessage {
  id: string
  seq: number
  rev: number
  ts_ms: number
  kind: string
  phase?: string
  text?: string
  agent_id?: string
  session_id?: string
  project_root?: string
  data?: unknown
}

export interface History {
  messages: UiMessage[]
  cursor: string
  earlier: string | null
}

export interface PlanItem {
  title: string
  description?: string
  status: string // pending, in_progress, done, skipped
}

export interface Plan {
  summary: string
  items: PlanItem[]
  status: string // planned (waits for a person), approved, executing, completed, rejected
  plan_text?: string
}

export interface FileChange {
  path: string
  summary: string
  diff: string
}

export interface Task {
  title: string
  user_stories: string[]
  acceptance_criteria: string[]
}

export interface Option {
  label: string
  description: string | null
  preview: string | null
}

export interface Question {
  question: string
  header: string
  options: Option[]
  multi_select: boolean
}

export interface AskUser {
  question_id: string
  questions: Question[]
  expires_at?: string
}

export interface Queued {
  id: string
  agent_id: string
  session_id: string
  preview: string
  timestamp: number // seconds
}

export interface ContextUsage {
  message_count: number
  estimated_tokens: number
  token_limit: number
  compressed: boolean
}

export interface ModelFallback {
  preferred_model: string
  actual_model: string
  reason: string
}
