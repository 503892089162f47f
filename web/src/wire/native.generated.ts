// Written by cmd/wiretypes from the Go types; `go generate ./web` writes it again.

export interface Agent {
  id: string
  name: string
  description: string
  model?: string
  status: string
  problem?: string
  made?: boolean
  project?: string
}

export interface AgentDetail {
  id: string
  name: string
  description: string
  model?: string
  status: string
  problem?: string
  made?: boolean
  project?: string
  definition: Definition
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

export interface BranchPoint {
  at: number
  sessions: string[]
}

export interface Card {
  id: string
  kind: string
  session: string
  root: string
  project?: string
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
  similar?: string
  questions?: Question[]
  plan?: Plan
  asked_at: string
  expires?: string
}

export interface Definition {
  name: string
  description?: string
  model?: string
  fallback_models?: string[]
  tools: string[]
  approval?: string
  limits?: {
    turns?: number
    tokens?: number
    minutes?: number
    cost_usd?: number
    compact?: number
    depth?: number
  }
  allow?: { roles?: string[]; users?: string[] }
  instructions?: string
  delegates?: string[]
  trust?: string[]
  address?: string
  command?: string[]
  env?: string[]
  idle_prompt?: string
  idle_interval_secs?: number
  autonomy?: {
    enabled: boolean
    max_consecutive?: number
    cooldown_ms?: number
    max_follow_ups?: number
    evaluator?: string
  }
  webhook?: { url: string; events?: string[]; secret_env: string; target: string }
}

export interface Effect {
  id: string
  session: string
  effect: number
  run: number
  owner: string
  type: string
  request?: string
  hook?: {
    event: string
    about: number
    run: number
    target: string
    run_finished?: boolean
    person_needed?: boolean
    session?: string
    agent?: string
  }
  status: string
  why?: string
  attempts: number
  last_attempt_at?: string
  created_at: string
  updated_at: string
}

export interface Erasure {
  user: string
  sessions: number
  events: number
  bytes: number
  replaced: number
  artifacts: number
  digest: string
  rewritten: boolean
}

export interface Grant {
  id: string
  scope: string
  tool: string
  text: string
  by: string
  at: string
  sources?: string[]
}

export interface IdleChoice {
  idle_prompt?: string
  idle_interval_secs?: number
}

export interface KeptSession {
  session: string
  owner: string
  reason: string
}

export interface Left {
  sessions?: number
  tokens?: number
  cost_micros?: number
  storage_bytes?: number
}

export interface LegalHold {
  kind: string
  id: string
  reason: string
  by: string
  at: string
}

export interface Mark {
  start: number
  end: number
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
  hint?: string
}

export interface MissionInfo {
  id: number
  project?: string
  project_gone?: boolean
  text: string
  agents: Array<{ agent: string; idle_prompt?: string; idle_interval_secs?: number }>
  by: string
  created_at: string
  ended_at?: string
  prompted?: PromptedAgent[]
}

export interface Model {
  id: string
  provider: string
  default: boolean
  context_window?: number
  input_price?: number
  output_price?: number
}

export interface ModelKey {
  vendor: string
  variable: string
  from?: string
  last?: string
  base_url?: string
  stored?: boolean
  set_at?: string
  problem?: string
}

export interface ModelKeyTrial {
  works: boolean
  reason?: string
  models?: number
  names?: string[]
}

export interface Node {
  id: string
  address: string
  version: string
  sessions: number
  projects: string[]
  since: string
  draining?: boolean
  differs?: string[]
}

export interface Origin {
  session: string
  run: number
  call: number
  depth: number
}

export interface Passage {
  session: string
  title: string
  owner: string
  seq: number
  at: string
  from: string
  text: string
  marks: Mark[]
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

export interface PromptedAgent {
  agent: string
  session: string
  count: number
  last_at: string
}

export interface Question {
  question: string
  header?: string
  options?: Array<{ label: string; description?: string }>
  multi_select?: boolean
}

export interface Quota {
  sessions?: number
  tokens?: number
  cost_micros?: number
  storage_bytes?: number
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

export interface RequestCall {
  id: number
  name: string
  arguments: string
}

export interface RequestImage {
  media_type: string
  bytes: number
}

export interface RequestMessage {
  role: string
  text: string
  thinking?: string
  incomplete?: boolean
  calls?: RequestCall[]
  call?: number
  images?: RequestImage[]
  seq: number
}

export interface RequestTool {
  name: string
  description: string
  parameters: unknown
}

export interface Retention {
  dry_run: boolean
  chunks: number
  sessions: number
  bytes: number
  artifacts: number
  audit: number
  kept: KeptSession[]
  more?: number
  note?: string
}

export interface Run {
  id: string
  session: string
  root: string
  project?: string
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

export interface SearchAnswer {
  passages: Passage[]
  cursor?: string
  indexing?: boolean
}

export interface ServerSetup {
  command?: string[]
  env?: Record<string, string>
  read?: string[]
  writes?: boolean
  network?: boolean
  bare?: boolean
  url?: string
  headers?: Record<string, string>
}

export interface ServerTool {
  name: string
  status: string
  reason?: string
  description: string
  parameters?: unknown
  digest: string
  accepted?: string
}

export interface ServerTrial {
  works: boolean
  reason?: string
  output?: string
  tools: ServerTool[]
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
  project?: string
  head: number
  opened_at: string
  updated_at: string
  pinned?: boolean
  archived?: boolean
  unread?: boolean
}

export interface SessionWebhook {
  session: string
  title: string
  owner: string
  url: string
  events: string[]
  status: string
  secret?: string
  set_at: string
  gone_at?: string
}

export interface Settings {
  model?: string
  approval: string
  turns: number
  compact_at: number
  max_delegation_depth: number
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

export interface Spent {
  sessions: number
  calls: number
  input?: number
  output?: number
  cached?: number
  written?: number
  cost_micros?: number
  estimated?: boolean
  storage_bytes: number
}

export interface Ticket {
  ticket: string
  expires_at: string
}

export interface Timer {
  id: string
  session: string
  timer: number
  run?: number
  agent: string
  owner: string
  by: string
  reason: string
  message?: string
  status: string
  why?: string
  fire_at: string
  created_at: string
  updated_at: string
}

export interface ToolServer {
  name: string
  transport: string
  status: string
  problem?: string
  trusted: boolean
  tools: ServerTool[]
  setup?: ServerSetup
  console?: boolean
}

export interface TurnRequest {
  agent: string
  model?: string
  fallback_models?: string[]
  mode?: string
  instructions?: string
  instructions_hidden?: boolean
  messages: RequestMessage[]
  tools: RequestTool[]
  instructions_match: string
  tools_match: string
  agent_redefined?: boolean
}

export interface Usage {
  input?: number
  output?: number
  cached?: number
  written?: number
  cost_micros?: number
  estimated?: boolean
}

export interface UsageOf {
  id: string
  used: Spent
  quota: Quota
  left: Left
}

export interface UsageReport {
  day: string
  renews_at: string
  user: UsageOf
  tenant?: UsageOf
  users?: UsageOf[]
}

export interface User {
  id: string
  conversations: number
  seen_at: string
}

export interface WebhookInfo {
  url: string
  events: string[]
  status: string
  secret?: string
  set_at: string
  gone_at?: string
}

export interface WebhookTrial {
  delivered: boolean
  reason?: string
  status?: number
  milliseconds: number
  answer?: string
  withheld?: boolean
}
