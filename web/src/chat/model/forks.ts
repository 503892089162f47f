// Forks: conversations that begin with a part of another one. Branches are forks that diverge at the same message.

import type { SessionForked } from '../../wire/log.generated'
import { urlOf } from './images'
import type { ChatMessage, ContentBlock } from './message'

// A Point is where conversations diverge: after this event of a session.
export interface Point {
  session: string
  at: number
}

export interface Fork {
  source: string
  at: number
  messages: ChatMessage[] // of the source, up to that event
}

// The log of a fork begins with two events: that it was opened, and its source.
export const forkHead = 2

// seqOf returns the number of an input in the log of a session; undefined: it belongs to another session.
export function seqOf(message: ChatMessage, session: string): number | undefined {
  const { inputId = '' } = message
  const seq = inputId.startsWith(session + '.') ? Number(inputId.slice(session.length + 1)) : NaN
  return Number.isInteger(seq) && seq > 0 ? seq : undefined
}

// pointBefore returns the point for replacing a message. The first message of a fork replaces one of its source.
export function pointBefore(message: ChatMessage, session: string, fork: Fork | null): Point | undefined {
  const seq = seqOf(message, session)
  if (seq === undefined || seq < 2) return undefined
  return fork !== null && seq - 1 <= forkHead ? { session: fork.source, at: fork.at } : { session, at: seq - 1 }
}

// pointAfter returns the point for continuing differently after a message: before the next user message. At the end
// there is none.
export function pointAfter(messages: ChatMessage[], message: ChatMessage, session: string): Point | undefined {
  const next = messages.slice(messages.indexOf(message) + 1).find((m) => seqOf(m, session) !== undefined)
  return next === undefined ? undefined : { session, at: seqOf(next, session)! - 1 }
}

// saidBefore returns the user message that an answer belongs to: the last one before it.
export function saidBefore(messages: ChatMessage[], answer: ChatMessage): ChatMessage | undefined {
  return messages.slice(0, messages.indexOf(answer)).findLast((m) => m.role === 'user')
}

export function forkOf({ source, at, messages = [] }: SessionForked, session: string, agent = ''): Fork {
  const list: ChatMessage[] = []
  const results = new Map(messages.filter((m) => m.role === 'tool').map((m) => [m.call, m.text ?? '']))
  for (const [i, { role, text = '', calls = [], images = [] }] of messages.entries()) {
    if (role === 'tool') continue // it is shown with its call
    const base = { id: `forked-${i}`, session, timestamp: '', text }
    if (role === 'user') {
      const pictures = images.map(urlOf)
      list.push({ ...base, role: 'user', from: 'user', ...(pictures.length > 0 && { images: pictures }) })
      continue
    }
    const content: ContentBlock[] = text.trim() === '' ? [] : [{ type: 'text', text, open: false }]
    for (const call of calls) content.push(callOf(call, results.get(call.id) ?? ''))
    const last = list.at(-1)
    if (last?.role === 'agent') {
      last.content!.push(...content)
      last.text += text
      last.toolCount! += calls.length
    } else list.push({ ...base, role: 'agent', from: agent, content, toolCount: calls.length })
  }
  return { source, at, messages: list }
}

function callOf(call: { id: number; name: string; arguments: string }, result: string): ContentBlock {
  let args: unknown = call.arguments
  try {
    args = JSON.parse(call.arguments)
  } catch {
    // not JSON: it is shown unchanged
  }
  return {
    type: 'tool_use',
    id: `forked-call-${call.id}`,
    tool: call.name,
    args,
    status: 'done',
    summary: '',
    output: result,
    cut: 0,
    startedMs: 0,
    endedMs: 0,
    turn: 1,
  }
}
