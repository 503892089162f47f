// What /api/v1 answers, as far as the pages of agents, approvals, runs and
// settings read it. Optional is what the server leaves out when it is empty.

export interface Agent {
  id: string
  name: string
  description: string
  model?: string
  status: 'running' | 'stopped' | 'unreachable'
  problem?: string
  made?: boolean
}

export interface Definition {
  name: string
  description?: string
  model?: string
  fallback_models?: string[]
  tools: string[] | null // null, or '*' among them: all
  approval?: string
  limits?: { turns?: number; tokens?: number; minutes?: number; cost_usd?: number; compact?: number; depth?: number }
  allow?: { roles: string[] }
  instructions?: string
  delegates?: string[]
  address?: string
}

export interface AgentDetail extends Agent {
  definition?: Definition
}

export interface Usage {
  input?: number
  output?: number
  cached?: number
  written?: number
  cost_micros?: number
}

export interface Run {
  id: string
  session: string
  root: string
  run: number
  agent: string
  owner: string
  parent?: { session: string; run: number; call: number; depth: number }
  request?: string
  outcome?: string // none: open
  waiting?: boolean
  code?: string
  message?: string
  usage?: Usage
  started_at: string
  ended_at?: string
}

export interface Question {
  question: string
  header?: string
  options?: { label: string; description?: string }[]
  multi_select?: boolean
}

export interface Card {
  id: string
  kind: 'approval' | 'question' | 'call'
  session: string
  root: string
  run: number
  seq: number
  call: number
  agent: string
  owner: string
  tool: string
  arguments: string
  show?: string
  digest?: string
  why?: string
  questions?: Question[]
  asked_at: string
  expires?: string
}

// An event of a log. The body is read by its type, and with care: later releases
// may have types that this one does not know.
export interface LogEvent {
  session: string
  seq: number
  position: number
  root: string
  at: string
  run?: number
  by?: string
  type: string
  body?: Record<string, unknown>
}

export interface Settings {
  model?: string
  approval: string
  turns: number
  compact_at: number
  max_delegation_depth: number
}

export interface ToolServer {
  name: string
  transport: string
  status: string
  problem?: string
  trusted: boolean
  tools: ServerTool[] | null
}

export interface ServerTool {
  name: string
  status: 'available' | 'waiting' | 'unusable'
  reason?: string
  description: string
  parameters?: unknown
  digest: string
  accepted?: string
}

export interface Skill {
  name: string
  description: string
  argument_hint?: string
  model?: string
  allowed_tools?: string[]
  user_invocable: boolean
  model_invocable: boolean
}
