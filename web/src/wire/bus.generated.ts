// Written by cmd/wiretypes from the Go types; `go generate ./web` writes it again.

export interface Activity {
  status: string
  detail: string | null
  lifecycle: string
  model?: string
  parent_id: string | null
  parent_run_id?: string
}

export interface AgentRun {
  run_id: string
  repo_path: string
  session_id: string
  agent_id: string
  agent_kind: string
  parent_run_id: string | null
  status: string
  detail: string | null
  started_at: number
  ended_at: number | null
}

export interface AskUser {
  question_id: string
  questions: Question[]
  expires_at?: string
}

export interface BlockStart {
  block_id: string
  block_type: string
  tool: string
  args: unknown
  parent_id: string | null
  parent_run_id?: string
}

export interface BlockUpdate {
  block_id: string
  status: string
  summary: string
  is_error: boolean
  duration_ms?: number
  parent_id: string | null
  parent_run_id?: string
}

export interface ChangeReport {
  run: string
  files: FileChange[]
  truncated_count: number
}

export interface ChangesUndone {
  run: string
  files: UndoneFile[]
  problem?: string
}

export interface ContextUsage {
  agent_id: string
  stage: string
  message_count: number
  char_count: number | null
  estimated_tokens: number
  token_limit: number
  actual_prompt_tokens: number | null
  actual_completion_tokens: number | null
  compressed: boolean
  summary_count: number
}

export interface FileChange {
  path: string
  summary: string
  diff: string
}

export interface FileEntry {
  name: string
  isDir: boolean
  path: string
}

export interface History {
  messages: unknown[]
  cursor: string
  earlier: string | null
  cut?: boolean
}

export interface Mission {
  text: string
  created_at: number
  active: boolean
  agents: MissionAgent[]
  ended_at?: number
  note?: string
}

export interface MissionAgent {
  id: string
  idle_prompt: string | null
  idle_interval_secs: number | null
}

export interface ModelFallback {
  preferred: string
  actual: string
  reason: string
  preferred_model: string
  actual_model: string
}

export interface Option {
  label: string
  description: string | null
  preview: string | null
}

export interface Outcome {
  type: string
  run_status: string
  message?: string
  title?: string
  user_stories?: string[]
  acceptance_criteria?: string[]
  mermaid_wireframe?: string
  summary?: string
  items?: PlanItem[]
  status?: string
  plan_text?: string
}

export interface Plan {
  summary: string
  items: PlanItem[]
  status: string
  plan_text?: string
}

export interface PlanItem {
  title: string
  description?: string
  status: string
}

export interface PlanUpdate {
  plan: Plan
}

export interface Question {
  question: string
  header: string
  options: Option[]
  multi_select: boolean
}

export interface Queue {
  items: Queued[]
  withdrawn?: string
}

export interface Queued {
  id: string
  agent_id: string
  session_id: string
  preview: string
  timestamp: number
}

export interface Resolved {
  widget_id: string
  widget_ids?: string[]
  resolution: string
}

export interface Resync {
  reason: string
  lagged_count: number | null
}

export interface RunOutcome {
  outcome: Outcome
}

export interface Said {
  from: string
  to: string
  role: string
  input_id?: string
  images?: number
  retry?: string
}

export interface Started {
  status: string
  session_id: string
  run_id?: string
}

export interface Subagent {
  parent_id: string | null
  parent_run_id?: string
  subagent_id: string
  subagent_session_id: string
  task?: string
  outcome?: Outcome
}

export interface Task {
  title: string
  user_stories: string[]
  acceptance_criteria: string[]
  mermaid_wireframe: string | null
}

export interface TextSegment {
  parent_id: string | null
  parent_run_id?: string
}

export interface Thinking {
  thinking: boolean
}

export interface ToolProgress {
  tool: string
  line: string
  stream: string
  block_id?: string
}

export interface TurnComplete {
  duration_ms: number | null
  context_tokens: number | null
  parent_id: string | null
  parent_run_id?: string
}

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
  session_name?: string
  project_root?: string
  data?: unknown
}

export interface UndoneFile {
  path: string
  did: string
}
