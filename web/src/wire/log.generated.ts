// Written by cmd/wiretypes from the Go types; `go generate ./web` writes it again.

export interface AgentChanged {
  agent: string
  digest?: string
  made?: boolean
  gone?: boolean
}

export interface AgentPrompted {
  mission: number
  project?: string
  agent: string
  session: string
  number: number
  at: string
}

export interface AgentStarted {
  agent: string
  project?: string
}

export interface AgentStopped {
  agent: string
  project?: string
}

export interface ApprovalDecided {
  card: number
  call: number
  decision: string
  scope?: string
  note?: string
}

export interface ApprovalExplained {
  card: number
  call: number
  text: string
  usage?: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
}

export interface ApprovalRequested {
  call: number
  name: string
  show: string
  digest: string
  expires: string
  why?: string
  sources?: string[]
  similar?: { text: string; digest: string }
}

export interface ChangesUndone {
  run: number
  files?: Array<{ path: string; did: string }>
  problem?: string
}

export interface ChildReturned {
  call: number
  child: string
  agent: string
  outcome: string
  result?: string
  usage: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
  sources?: string[]
}

export interface ChildSpawned {
  call: number
  child: string
  agent: string
  task: string
  depth: number
  tainted?: boolean
  sources?: string[]
  untrusted?: string[]
  tokens?: number
  seconds?: number
  micros?: number
  hooks?: Array<{ target: string; run_finished?: boolean; person_needed?: boolean; session?: string; agent?: string }>
  off?: string[]
}

export interface CompactionFailed {
  code: string
  message: string
  auto?: boolean
  vendor?: { status: number; message?: string }
}

export interface CompactionStarted {
  auto?: boolean
}

export interface ContextCompacted {
  from?: number
  upto: number
  summary: string
  before: number
  after: number
  limit: number
  messages: number
  auto?: boolean
  usage: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
}

export interface ContextMeasured {
  turn: number
  tokens: number
  limit: number
  messages: number
  estimated?: boolean
  prompt?: { instructions: string; tools: string }
}

export interface EffectCancelled {
  effect: number
  why: string
}

export interface EffectEnqueued {
  type: string
  request?: string
  autonomous?: boolean
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
}

export interface ExplanationRequested {
  card: number
  call: number
}

export interface FilesChanged {
  files: Array<{ path: string; summary: string; diff?: string }>
  truncated?: number
  after?: number
}

export interface FollowUpEvaluated {
  run: number
  scheduled?: boolean
  reason?: string
  code?: string
  message?: string
  usage: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
}

export interface GrantRevoked {
  grant: number
}

export interface InputAdopted {
  input: number
  request?: string
}

export interface InputReceived {
  content: string
  request?: string
  agent: {
    name: string
    digest?: string
    model?: string
    turns?: number
    tokens?: number
    seconds?: number
    micros?: number
    compact?: number
    depth?: number
    files?: boolean
    titles?: boolean
    remote?: boolean
    autonomy?: {
      enabled: boolean
      max_consecutive?: number
      cooldown_ms?: number
      max_follow_ups?: number
      evaluator?: string
    }
    trust?: string
    hook?: { target: string; run_finished?: boolean; person_needed?: boolean }
  }
  busy: string
  command?: string
  deliver?: boolean
  finding?: { verdict: string; score?: number; reason?: string }
  classify?: boolean
  images?: Array<{ type: string; data: string; name?: string; pages?: number; text?: string }>
  mode?: string
  plan?: boolean
  fresh?: boolean
  skill?: { name: string; text: string; tools?: string[]; model?: string }
  synthetic?: boolean
  mission?: number
  sources?: string[]
  tools?: Array<{ name: string; description?: string; parameters?: string }>
  client_calls?: boolean
  earlier?: Array<{
    role: string
    text?: string
    calls?: Array<{ id: string; name: string; arguments: string }>
    call?: string
  }>
}

export interface InputScreened {
  input: number
  finding: { verdict: string; score?: number; reason?: string }
}

export interface InputWithdrawn {
  input: number
  request?: string
  reason: string
}

export interface LateResultNoted {
  run: number
  call: number
  result: string
  text?: string
  usage?: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
}

export interface MissionCleared {
  mission: number
  project?: string
}

export interface MissionSet {
  project?: string
  text: string
  agents?: Array<{ agent: string; idle_prompt?: string; idle_interval_secs?: number }>
  roles?: string[]
}

export interface ModelFellBack {
  turn: number
  preferred: string
  actual: string
  reason: string
}

export interface OutputAppended {
  output: number
  kind: string
  offset: number
  text: string
}

export interface OutputFinished {
  output: number
  kind: string
  text: string
  first?: number
  incomplete?: boolean
}

export interface OutputStarted {
  turn: number
  kind: string
}

export interface OverrideSet {
  project?: string
  agent: string
  idle_prompt?: string
  idle_interval_secs?: number
}

export interface PlanChanged {
  summary?: string
  items?: Array<{ title: string; description?: string; status: string }>
  status: string
  text?: string
  agent?: string
}

export interface ProblemReported {
  code: string
  message: string
  retry?: { turn: number; problem: string; attempt: number; of: number; gave_up?: boolean }
  project?: string
}

export interface PromptSettled {
  mission: number
  agent: string
  prompt: number
  code?: string
  message?: string
}

export interface QuestionAnswered {
  card: number
  call: number
  ending: string
  answers?: string[][]
}

export interface QuestionAsked {
  call: number
  questions: Array<{
    question: string
    header?: string
    options?: Array<{ label: string; description?: string }>
    multi_select?: boolean
  }>
  expires: string
}

export interface RunFinished {
  outcome: string
  code?: string
  message?: string
  usage: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
  vendor?: { status: number; message?: string }
  report_follows?: boolean
}

export interface RunStarted {
  input: number
  request?: string
  agent: {
    name: string
    digest?: string
    model?: string
    turns?: number
    tokens?: number
    seconds?: number
    micros?: number
    compact?: number
    depth?: number
    files?: boolean
    titles?: boolean
    remote?: boolean
    autonomy?: {
      enabled: boolean
      max_consecutive?: number
      cooldown_ms?: number
      max_follow_ups?: number
      evaluator?: string
    }
    trust?: string
    hook?: { target: string; run_finished?: boolean; person_needed?: boolean }
  }
  mode?: string
}

export interface SessionDeleted {
}

export interface SessionForked {
  source: string
  at: number
  messages?: Array<{
    role: string
    text?: string
    incomplete?: boolean
    calls?: Array<{ id: number; name: string; arguments: string }>
    call?: number
    images?: Array<{ type: string; data: string; name?: string; pages?: number; text?: string }>
  }>
  sources?: string[]
}

export interface SessionHalted {
  reason: string
}

export interface SessionOpened {
  owner: string
  agent?: string
  title?: string
  name?: string
  transient?: boolean
  project?: string
  parent?: { session: string; run: number; call: number; depth: number }
  hooks?: Array<{ target: string; run_finished?: boolean; person_needed?: boolean; session?: string; agent?: string }>
  off?: string[]
}

export interface SessionRenamed {
  title: string
  agent?: string
  usage?: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
}

export interface SessionReopened {
}

export interface SettingsChanged {
  values: Record<string, unknown>
}

export interface TimerCancelled {
  timer: number
  why: string
}

export interface TimerFired {
  timer: number
  at: string
  stamp: number
  due?: string
}

export interface TimerPostponed {
  timer: number
  at: string
  why: string
}

export interface TimerSet {
  at: string
  reason: string
  message?: string
  by: string
  agent: {
    name: string
    digest?: string
    model?: string
    turns?: number
    tokens?: number
    seconds?: number
    micros?: number
    compact?: number
    depth?: number
    files?: boolean
    titles?: boolean
    remote?: boolean
    autonomy?: {
      enabled: boolean
      max_consecutive?: number
      cooldown_ms?: number
      max_follow_ups?: number
      evaluator?: string
    }
    trust?: string
    hook?: { target: string; run_finished?: boolean; person_needed?: boolean }
  }
  call?: number
}

export interface ToolCallBlocked {
  call: number
  name: string
  reason: string
}

export interface ToolCallFinished {
  call: number
  name: string
  outcome: string
  result?: string
  finding?: { verdict: string; score?: number; reason?: string }
  exit?: number
}

export interface ToolCallRequested {
  turn: number
  name: string
  arguments: string
  provider?: string
  class?: string
  source?: string
  rerun_of?: number
  remote?: boolean
  client?: boolean
  expires?: string
  made?: boolean
}

export interface ToolCallResolved {
  call: number
  resolution: string
  note?: string
}

export interface ToolCallStarted {
  call: number
  attempt: number
}

export interface ToolOutputAppended {
  call: number
  offset: number
  text: string
  stream?: string
}

export interface ToolServersChosen {
  off: string[]
}

export interface ToolsAccepted {
  server: string
  tools: Record<string, string>
  first?: boolean
}

export interface TurnFinished {
  turn: number
  stop: string
  usage: {
    input?: number
    output?: number
    cached?: number
    written?: number
    cost_micros?: number
    estimated?: boolean
  }
  code?: string
  message?: string
  memo?: { provider: string; model: string; data: unknown }
  vendor?: { status: number; message?: string }
  handed?: boolean
}

export interface TurnStarted {
  number: number
  model?: string
}

export interface UndoRequested {
  run: number
}

export interface WebhookChanged {
  target: string
  run_finished?: boolean
  person_needed?: boolean
}

export interface LogLine {
  session: string
  seq: number
  position: number
  root: string
  at: string
  run?: number
  by?: string
  version?: number
}

export type LogEvent = LogLine &
  (
    | { type: 'AgentChanged'; body: AgentChanged }
    | { type: 'AgentPrompted'; body: AgentPrompted }
    | { type: 'AgentStarted'; body: AgentStarted }
    | { type: 'AgentStopped'; body: AgentStopped }
    | { type: 'ApprovalDecided'; body: ApprovalDecided }
    | { type: 'ApprovalExplained'; body: ApprovalExplained }
    | { type: 'ApprovalRequested'; body: ApprovalRequested }
    | { type: 'ChangesUndone'; body: ChangesUndone }
    | { type: 'ChildReturned'; body: ChildReturned }
    | { type: 'ChildSpawned'; body: ChildSpawned }
    | { type: 'CompactionFailed'; body: CompactionFailed }
    | { type: 'CompactionStarted'; body: CompactionStarted }
    | { type: 'ContextCompacted'; body: ContextCompacted }
    | { type: 'ContextMeasured'; body: ContextMeasured }
    | { type: 'EffectCancelled'; body: EffectCancelled }
    | { type: 'EffectEnqueued'; body: EffectEnqueued }
    | { type: 'ExplanationRequested'; body: ExplanationRequested }
    | { type: 'FilesChanged'; body: FilesChanged }
    | { type: 'FollowUpEvaluated'; body: FollowUpEvaluated }
    | { type: 'GrantRevoked'; body: GrantRevoked }
    | { type: 'InputAdopted'; body: InputAdopted }
    | { type: 'InputReceived'; body: InputReceived }
    | { type: 'InputScreened'; body: InputScreened }
    | { type: 'InputWithdrawn'; body: InputWithdrawn }
    | { type: 'LateResultNoted'; body: LateResultNoted }
    | { type: 'MissionCleared'; body: MissionCleared }
    | { type: 'MissionSet'; body: MissionSet }
    | { type: 'ModelFellBack'; body: ModelFellBack }
    | { type: 'OutputAppended'; body: OutputAppended }
    | { type: 'OutputFinished'; body: OutputFinished }
    | { type: 'OutputStarted'; body: OutputStarted }
    | { type: 'OverrideSet'; body: OverrideSet }
    | { type: 'PlanChanged'; body: PlanChanged }
    | { type: 'ProblemReported'; body: ProblemReported }
    | { type: 'PromptSettled'; body: PromptSettled }
    | { type: 'QuestionAnswered'; body: QuestionAnswered }
    | { type: 'QuestionAsked'; body: QuestionAsked }
    | { type: 'RunFinished'; body: RunFinished }
    | { type: 'RunStarted'; body: RunStarted }
    | { type: 'SessionDeleted'; body: SessionDeleted }
    | { type: 'SessionForked'; body: SessionForked }
    | { type: 'SessionHalted'; body: SessionHalted }
    | { type: 'SessionOpened'; body: SessionOpened }
    | { type: 'SessionRenamed'; body: SessionRenamed }
    | { type: 'SessionReopened'; body: SessionReopened }
    | { type: 'SettingsChanged'; body: SettingsChanged }
    | { type: 'TimerCancelled'; body: TimerCancelled }
    | { type: 'TimerFired'; body: TimerFired }
    | { type: 'TimerPostponed'; body: TimerPostponed }
    | { type: 'TimerSet'; body: TimerSet }
    | { type: 'ToolCallBlocked'; body: ToolCallBlocked }
    | { type: 'ToolCallFinished'; body: ToolCallFinished }
    | { type: 'ToolCallRequested'; body: ToolCallRequested }
    | { type: 'ToolCallResolved'; body: ToolCallResolved }
    | { type: 'ToolCallStarted'; body: ToolCallStarted }
    | { type: 'ToolOutputAppended'; body: ToolOutputAppended }
    | { type: 'ToolServersChosen'; body: ToolServersChosen }
    | { type: 'ToolsAccepted'; body: ToolsAccepted }
    | { type: 'TurnFinished'; body: TurnFinished }
    | { type: 'TurnStarted'; body: TurnStarted }
    | { type: 'UndoRequested'; body: UndoRequested }
    | { type: 'WebhookChanged'; body: WebhookChanged }
  )
