// Reading values from the wire. A value of the wrong type counts as missing.

import type {
  AskUser,
  ContextUsage,
  FileChange,
  Plan,
  Queued,
  ModelFallback,
  Task,
  UiMessage,
  UndoneFile,
} from './bus.generated'

const lastMs = 8.64e15 // the largest time of a Date

export type Fields = Record<string, unknown>

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

export function str(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function num(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

export function list<T>(value: unknown, each: (item: unknown) => T): T[] {
  return Array.isArray(value) ? value.map(each) : []
}

// stamp formats a time; an invalid one becomes the epoch.
export function stamp(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? new Date(0).toISOString() : date.toISOString()
}

// readMessage returns a message of the bus; null: this is not one.
export function readMessage(value: unknown): UiMessage | null {
  const f = fields(value)
  const seq = num(f.seq)
  if (seq === undefined || str(f.kind) === '') return null
  return {
    id: str(f.id),
    seq,
    rev: num(f.rev) ?? seq,
    ts_ms: Math.min(Math.max(num(f.ts_ms) ?? 0, 0), lastMs),
    kind: str(f.kind),
    phase: str(f.phase) || undefined,
    text: typeof f.text === 'string' ? f.text : undefined,
    agent_id: str(f.agent_id) || undefined,
    session_id: str(f.session_id) || undefined,
    project_root: str(f.project_root) || undefined,
    data: f.data,
  }
}

// parseMessage reads one frame. An invalid one is logged and skipped.
export function parseMessage(frame: unknown): UiMessage | null {
  let value: unknown
  try {
    value = JSON.parse(String(frame))
  } catch {
    value = undefined
  }
  const message = readMessage(value)
  if (message === null) console.warn('A broken frame was skipped.', String(frame).slice(0, 200))
  return message
}

export function readPlan(value: unknown): Plan {
  const f = fields(value)
  return {
    summary: str(f.summary),
    status: str(f.status),
    plan_text: str(f.plan_text) || undefined,
    items: list(f.items, (item) => {
      const i = fields(item)
      return { title: str(i.title), description: str(i.description) || undefined, status: str(i.status) || 'pending' }
    }),
  }
}

export function readTask(value: unknown): Task {
  const f = fields(value)
  return {
    title: str(f.title),
    user_stories: list(f.user_stories, str),
    acceptance_criteria: list(f.acceptance_criteria, str),
    mermaid_wireframe: str(f.mermaid_wireframe) || null,
  }
}

export function readFiles(value: unknown): FileChange[] {
  return list(value, (file) => {
    const f = fields(file)
    return { path: str(f.path), summary: str(f.summary), diff: str(f.diff) }
  })
}

export function readUndone(value: unknown): UndoneFile[] {
  return list(value, (file) => {
    const f = fields(file)
    return { path: str(f.path), did: str(f.did) }
  })
}

export function readAskUser(value: unknown): AskUser {
  const f = fields(value)
  return {
    question_id: str(f.question_id),
    expires_at: str(f.expires_at) || undefined,
    questions: list(f.questions, (question) => {
      const q = fields(question)
      return {
        question: str(q.question),
        header: str(q.header),
        multi_select: q.multi_select === true,
        options: list(q.options, (option) => {
          const o = fields(option)
          return { label: str(o.label), description: str(o.description) || null, preview: str(o.preview) || null }
        }),
      }
    }),
  }
}

export function readQueue(value: unknown): Queued[] {
  return list(value, (item) => {
    const f = fields(item)
    return {
      id: str(f.id),
      agent_id: str(f.agent_id),
      session_id: str(f.session_id),
      preview: str(f.preview),
      timestamp: num(f.timestamp) ?? 0,
    }
  }).filter((item) => item.id !== '')
}

export function readContext(value: unknown): ContextUsage {
  const f = fields(value)
  return {
    agent_id: str(f.agent_id),
    stage: str(f.stage),
    message_count: num(f.message_count) ?? 0,
    char_count: num(f.char_count) ?? null,
    estimated_tokens: num(f.estimated_tokens) ?? 0,
    token_limit: num(f.token_limit) ?? 0,
    actual_prompt_tokens: num(f.actual_prompt_tokens) ?? null,
    actual_completion_tokens: num(f.actual_completion_tokens) ?? null,
    compressed: f.compressed === true,
    summary_count: num(f.summary_count) ?? 0,
  }
}

export function readFallback(value: unknown): ModelFallback {
  const f = fields(value)
  const preferred = str(f.preferred)
  const actual = str(f.actual)
  return { preferred, actual, reason: str(f.reason), preferred_model: preferred, actual_model: actual }
}
