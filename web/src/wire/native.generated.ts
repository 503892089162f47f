// Written by cmd/wiretypes from the Go types; `go generate ./web` writes it again.

export interface Agent {
  id: string
  name: string
  description: string
  model?: string
  status: string
  problem?: string
  made?: boolean
}

export interface AuditEvent {
  id: string
  tenant_id: string
  user_id?: string
  action: string
  resource_type?: string
  resource_id?: string
  metadata?: unknown
  source: string
  created_at: string
  hash: string
}

export interface Card {
  id: string
  kind: string
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

export interface Me {
  user: string
  tenant: string
  roles: string[]
  permissions: string[]
  project?: string
  version: string
  auth: string
  model: string
  demo: boolean
  oidc: boolean
}

export interface Origin {
  session: string
  run: number
  call: number
  depth: number
}

export interface Plan {
  summary?: string
  items?: PlanItem[]
  status: string
  text?: string
  agent?: string
}

export interface PlanItem {
  title: string
  description?: string
  status: string
}

export interface Question {
  question: string
  header?: string
  options?: Array<{ label: string; description?: string }>
  multi_select?: boolean
}

export interface Receipt {
  session: string
  command?: string
  first?: number
  last: number
  repeated?: boolean
}

export interface Refusal {
  code: string
  message: string
}

export interface Run {
  id: string
  session: string
  root: string
  run: number
  agent: string
  owner: string
  parent?: Origin
  request?: string
  outcome?: string
  waiting?: boolean
  code?: string
  message?: string
  usage?: Usage
  started_at: string
  ended_at?: string
}

export interface Session {
  id: string
  root: string
  owner: string
  agent: string
  title: string
  status: string
  run?: number
  transient: boolean
  head: number
  opened_at: string
  updated_at: string
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

export interface Ticket {
  ticket: string
  expires_at: string
}

export interface Usage {
  input?: number
  output?: number
  cached?: number
  written?: number
  cost_micros?: number
}
