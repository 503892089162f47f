// The state of a conversation is the fold of the messages of the bus. History
// and live messages go through the same reducer, so that a reload, a second tab
// and a lost connection end in the same picture.

import type { ChangesUndone, ContextUsage, FileChange, ModelFallback, Plan, Queued, Task } from '../../wire/bus.generated'
import {
  blocksOf,
  hasSaid,
  isEmpty,
  withBlock,
  withCut,
  withEnd,
  withLast,
  withOutput,
  withSegment,
  withToken,
  withTool,
  withToolUpdate,
} from './blocks'
import { contentOf } from './approval'
import type { Card, ChatMessage, ContentBlock, Retry, SubagentTreeEntry, ToolUse } from './message'
import { isTransient } from './message'
import { stamp } from '../../wire/read'

export interface ChatState {
  session: string
  seq: number // of the last message of the bus in this state
  messages: ChatMessage[]
  waiting: ChatMessage[] // sent while the agent was busy, and not read by it yet
  cards: Card[] // open cards, also of sub-agents
  context?: ContextUsage
  plan?: Plan
  fallback?: ModelFallback // of the last run
  undone: Readonly<Record<string, ChangesUndone>> // results of undoing a run's changes, by run
  askedMs?: number // when the card was opened, if one is open
  loaded: boolean
  earlier: string | null // cursor for earlier history; null: there is none
}

// An action of a sub-agent names its session.
interface Of {
  session?: string
}

export type ChatAction =
  // Token streaming
  | (Of & { type: 'APPEND_TOKEN'; text: string; thinking: boolean; done: boolean; at: number })
  | (Of & { type: 'SET_THINKING'; thinking: boolean })
  // Message lifecycle
  | { type: 'PUSH_MESSAGE'; message: ChatMessage }
  | (Of & { type: 'FINALIZE_MESSAGE'; outcome: string; task?: Task; at: number })
  | { type: 'CLEAR_MESSAGES' }
  // Activity
  | (Of & {
      type: 'SET_ACTIVITY'
      text: string
      status: string
      agent: string
      model?: string
      at: number
      seq: number
    })
  | (Of & { type: 'ACTIVITY_DONE'; text: string })
  // Run events
  | (Of & { type: 'SET_CONTEXT_USAGE'; usage: ContextUsage })
  | { type: 'ADD_SUBAGENT'; entry: SubagentTreeEntry }
  | { type: 'MARK_SUBAGENT_DONE'; id: string; status: string; at: number }
  | (Of & { type: 'SET_PLAN'; plan: Plan })
  // Special
  | { type: 'SET_ASK_USER'; card: Card; at: number }
  | (Of & { type: 'SET_MODEL_FALLBACK'; fallback: ModelFallback })
  | (Of & { type: 'PUSH_TEXT_SEGMENT'; text: string })
  // Additions of Parley's bus to the document
  | (Of & { type: 'SAY'; message: ChatMessage; notice: boolean; retry?: Retry })
  | { type: 'SET_QUEUE'; agent: string; items: Queued[]; withdrawn: string; at: number; seq: number }
  | { type: 'RESOLVE_CARDS'; ids: string[]; at: number }
  | (Of & { type: 'ADD_TOOL'; tool: Omit<ToolUse, 'turn'> })
  | (Of & { type: 'UPDATE_TOOL'; id: string; status: string; summary: string; ranMs?: number; at: number })
  | (Of & { type: 'APPEND_TOOL_OUTPUT'; id: string; tool: string; line: string })
  | (Of & { type: 'ADD_CHANGE_REPORT'; run?: string; files: FileChange[]; truncated: number })
  | { type: 'CHANGES_UNDONE'; undone: ChangesUndone }
  | (Of & { type: 'COMPLETE_TURN'; durationMs?: number; contextTokens?: number })
  // Folding
  | { type: 'RECEIVE'; frames: Frame[] }
  | { type: 'LOAD_HISTORY'; frames: Frame[]; earlier: string | null }
  | { type: 'PREPEND_HISTORY'; frames: Frame[]; earlier: string | null }

// A Frame holds the actions of one message of the bus.
export interface Frame {
  seq: number
  actions: ChatAction[]
}

export function initialState(session: string): ChatState {
  return { session, seq: 0, messages: [], waiting: [], cards: [], undone: {}, loaded: false, earlier: null }
}

export function chatReducer(state: ChatState, action: ChatAction): ChatState {
  switch (action.type) {
    case 'RECEIVE':
      return receive(state, action.frames)
    case 'LOAD_HISTORY':
      return { ...receive(initialState(state.session), action.frames), loaded: true, earlier: action.earlier }
    case 'PREPEND_HISTORY':
      return prepend(state, action.frames, action.earlier)
    case 'CLEAR_MESSAGES':
      return { ...initialState(state.session), seq: state.seq, loaded: state.loaded }
    case 'PUSH_MESSAGE':
      return action.message.role === 'user'
        ? pushUser(state, action.message)
        : { ...state, messages: [...state.messages, action.message] }
    case 'SET_QUEUE':
      return setQueue(state, action)
    case 'SET_ASK_USER':
      return {
        ...state,
        cards: [...state.cards.filter((card) => card.question_id !== action.card.question_id), action.card],
        askedMs: state.askedMs ?? action.at,
      }
    case 'CHANGES_UNDONE':
      return { ...state, undone: { ...state.undone, [action.undone.run]: action.undone } }
    case 'RESOLVE_CARDS':
      return resolveCards(state, action)
    case 'ADD_SUBAGENT':
      return onCurrent(state, undefined, (m) => ({
        ...m,
        subagentTree: [...(m.subagentTree ?? []).filter((e) => e.id !== action.entry.id), action.entry],
      }))
    case 'MARK_SUBAGENT_DONE':
      return onEntry(state, action.id, (e) => ({
        ...e,
        status: action.status,
        endedMs: action.at,
        message: withEnd(e.message, action.at, action.status),
      }))
    default:
      return ofOne(state, action)
  }
}

type OfOne = Exclude<ChatAction, { type: Folding | OfAll }>
type Folding = 'RECEIVE' | 'LOAD_HISTORY' | 'PREPEND_HISTORY' | 'CLEAR_MESSAGES'
type OfAll =
  | 'PUSH_MESSAGE'
  | 'SET_QUEUE'
  | 'SET_ASK_USER'
  | 'RESOLVE_CARDS'
  | 'CHANGES_UNDONE'
  | 'ADD_SUBAGENT'
  | 'MARK_SUBAGENT_DONE'

// ofOne changes the current message of the conversation or of a sub-agent.
function ofOne(state: ChatState, action: OfOne): ChatState {
  const { session } = action
  const ours = session === undefined
  switch (action.type) {
    case 'APPEND_TOKEN':
      return onCurrent(state, session, (m) => withToken(m, action.text, action.thinking, action.done, action.at))
    case 'SET_THINKING':
      return onCurrent(state, session, (m) => ({ ...m, isThinking: action.thinking }))
    case 'FINALIZE_MESSAGE': {
      const ended = onLast(state, session, (m) => {
        const done = withEnd(m, action.at, action.outcome)
        return action.task === undefined ? done : withBlock(done, { type: 'finalize_task', task: action.task })
      })
      return ours ? { ...ended, fallback: undefined } : ended
    }
    case 'SET_ACTIVITY':
      return setActivity(state, action)
    case 'ACTIVITY_DONE':
      return onLast(state, session, (m) =>
        m.activitySummary === action.text && m.isGenerating ? { ...m, activitySummary: undefined } : m,
      )
    case 'SET_CONTEXT_USAGE': {
      const counted = onLast(state, session, (m) => ({
        ...m,
        contextTokens: action.usage.estimated_tokens,
        messageCount: action.usage.message_count,
      }))
      return ours ? { ...counted, context: action.usage } : counted
    }
    case 'SET_PLAN':
      return setPlan(state, session, action.plan)
    case 'SET_MODEL_FALLBACK': {
      const fallen = onCurrent(state, session, (m) =>
        withBlock({ ...m, model: action.fallback.actual }, { type: 'model_fallback', fallback: action.fallback }),
      )
      return ours ? { ...fallen, fallback: action.fallback } : fallen
    }
    case 'PUSH_TEXT_SEGMENT':
      return onCurrent(state, session, (m) => withSegment(m, action.text))
    case 'SAY':
      return say(state, session, action)
    case 'ADD_TOOL':
      return onCurrent(state, session, (m) =>
        withTool(m, { ...action.tool, turn: Math.max(1, (m.turns ?? []).length) }),
      )
    case 'UPDATE_TOOL':
      return onLast(state, session, (m) =>
        withToolUpdate(m, action.id, (tool) => ({
          ...tool,
          status: action.status,
          summary: action.summary,
          ranMs: action.ranMs,
          endedMs: action.at,
        })),
      )
    case 'APPEND_TOOL_OUTPUT':
      return onLast(state, session, (m) => withOutput(m, action.id, action.tool, action.line))
    case 'ADD_CHANGE_REPORT':
      return onAnswered(state, session, (m) =>
        withBlock(m, { type: 'change_report', run: action.run, files: action.files, truncated: action.truncated }),
      )
    case 'COMPLETE_TURN':
      return onLast(state, session, (m) => ({
        ...m,
        durationMs: action.durationMs ?? m.durationMs,
        contextTokens: action.contextTokens ?? m.contextTokens,
      }))
  }
}

// receive folds frames once: a frame that is not newer than the state was folded before.
function receive(state: ChatState, frames: Frame[]): ChatState {
  let next = state
  for (const frame of frames) {
    if (frame.seq <= next.seq) continue
    next = { ...frame.actions.reduce(chatReducer, next), seq: frame.seq }
  }
  return next
}

// prepend puts an earlier page in front. Pages hold whole runs, so a page can be folded by itself; an input that still
// waited at its end was read in a later page.
function prepend(state: ChatState, frames: Frame[], earlier: string | null): ChatState {
  const page = receive(initialState(state.session), frames)
  const known = new Set([...state.messages, ...state.waiting].flatMap((m) => m.inputId ?? []))
  const whole = new Map(
    [...page.waiting, ...page.messages].flatMap((m) => (m.inputId === undefined ? [] : [[m.inputId, m.text]])),
  )
  const rewrite = (m: ChatMessage) => {
    const text = m.inputId === undefined ? undefined : whole.get(m.inputId)
    return text === undefined || text === m.text ? m : { ...m, text }
  }
  return {
    ...state,
    messages: [
      ...page.messages
        .filter((m) => m.inputId === undefined || !known.has(m.inputId))
        .map((m) => (m.isGenerating ? withEnd(m, m.timestampMs ?? 0) : m)),
      ...page.waiting.filter((m) => m.inputId === undefined || !known.has(m.inputId)),
      ...state.messages.map(rewrite),
    ],
    waiting: state.waiting.map(rewrite),
    undone: { ...page.undone, ...state.undone },
    plan: state.plan ?? page.plan,
    context: state.context ?? page.context,
    earlier,
  }
}

export function agentMessage(session: string, id: string, from: string, at: number): ChatMessage {
  return {
    role: 'agent',
    from,
    to: 'user',
    text: '',
    timestamp: stamp(at),
    timestampMs: at,
    isGenerating: true,
    id,
    session,
  }
}

// current returns the index of the current message; -1: there is none.
export function current(state: ChatState): number {
  return state.messages.findLastIndex((m) => m.isGenerating === true)
}

// pushUser adds a message of the user, and the answer that will follow it.
function pushUser(state: ChatState, message: ChatMessage): ChatState {
  const going = current(state)
  if (going < 0) return { ...state, messages: [...state.messages, message, answerTo(state, message)] }
  if (isEmpty(state.messages[going]!) && message.to === state.messages[going]!.from) {
    return { ...state, messages: state.messages.toSpliced(going, 0, message) }
  }
  return { ...state, messages: [...state.messages, message] }
}

function answerTo(state: ChatState, message: ChatMessage): ChatMessage {
  return agentMessage(state.session, 'answer-' + message.id, message.to ?? '', message.timestampMs ?? 0)
}

// setQueue: a listed input waits. When an input is no longer listed, the agent has read it and answers it from here on,
// unless it was withdrawn.
function setQueue(
  state: ChatState,
  { agent, items, withdrawn, at, seq }: Extract<ChatAction, { type: 'SET_QUEUE' }>,
): ChatState {
  const listed = new Map(items.map((item) => [item.id, item]))
  const gone = state.waiting.filter((m) => m.to === agent && !listed.has(m.inputId ?? ''))
  const others = state.waiting.filter((m) => !gone.includes(m))
  const held = new Set(others.map((m) => m.inputId))
  const isListed = (m: ChatMessage) => m.role === 'user' && m.inputId !== undefined && listed.has(m.inputId)
  const shown = state.messages.filter(isListed)
  const fresh = items
    .filter((item) => !held.has(item.id))
    .map((item) => shown.find((m) => m.inputId === item.id) ?? queuedMessage(state.session, agent, item))
  let next: ChatState = { ...state, waiting: [...others, ...fresh] }
  if (shown.length > 0) next = { ...next, messages: state.messages.filter((m) => !isListed(m)) }
  if (withdrawn !== '') next = withoutInput(next, withdrawn)
  for (const m of gone) if (m.inputId !== withdrawn) next = adopt(next, m, at, seq)
  return next
}

function queuedMessage(session: string, agent: string, item: Queued): ChatMessage {
  const at = item.timestamp * 1000
  return {
    role: 'user',
    from: 'user',
    to: agent,
    text: item.preview,
    timestamp: stamp(at),
    timestampMs: at,
    id: 'input-' + item.id,
    session,
    inputId: item.id,
  }
}

// withoutInput removes an input that was withdrawn before the agent read it.
function withoutInput(state: ChatState, id: string): ChatState {
  const at = state.messages.findIndex((m) => m.inputId === id)
  if (at < 0) return state
  const answer = state.messages[at + 1]
  const none = answer !== undefined && answer.isGenerating === true && isEmpty(answer)
  return { ...state, messages: state.messages.toSpliced(at, none ? 2 : 1) }
}

// adopt: the agent has read a waiting input, and its answer continues below it.
function adopt(state: ChatState, message: ChatMessage, at: number, seq: number): ChatState {
  const going = current(state)
  if (going < 0) return pushUser(state, message)
  const before = state.messages[going]!
  if (isEmpty(before)) return { ...state, messages: state.messages.toSpliced(going, 0, message) }
  const rest = {
    ...agentMessage(state.session, `answer-${message.id}-${seq}`, before.from ?? '', at),
    statusSinceMs: before.statusSinceMs,
  }
  return { ...state, messages: [...state.messages.with(going, withEnd(before, at)), message, rest] }
}

// resolveCards: an approved tool begins now. The time that a person took does not count as the agent's.
function resolveCards(state: ChatState, { ids, at }: Extract<ChatAction, { type: 'RESOLVE_CARDS' }>): ChatState {
  const answered = state.cards.filter((card) => ids.includes(card.question_id))
  if (answered.length === 0) return state
  const cards = state.cards.filter((card) => !answered.includes(card))
  let next: ChatState = { ...state, cards }
  for (const card of answered) {
    const asked = contentOf(card)
    if (asked.kind !== 'approval') continue
    next = onLast(next, card.session === state.session ? undefined : card.session, (m) => ({
      ...m,
      content: m.content?.map((block) =>
        block.type === 'tool_use' && block.tool === asked.tool && block.endedMs === undefined
          ? { ...block, startedMs: at }
          : block,
      ),
    }))
  }
  if (cards.length > 0) return next
  const waited = at - (state.askedMs ?? at)
  next = onLast(next, undefined, (m) => ({ ...m, waitedMs: (m.waitedMs ?? 0) + waited }))
  return { ...next, askedMs: undefined }
}

function setActivity(
  state: ChatState,
  { session, text, status, agent, model, at, seq }: Extract<ChatAction, { type: 'SET_ACTIVITY' }>,
): ChatState {
  let next = state
  if (session === undefined && current(state) < 0) {
    next = { ...state, messages: [...state.messages, agentMessage(state.session, 'answer-' + seq, agent, at)] }
  }
  const turn = status === 'model_loading'
  return onCurrent(next, session, (m) => ({
    ...(turn ? withCut(m) : m),
    model: model ?? m.model,
    from: agent || m.from,
    isThinking: status === 'thinking',
    activitySummary: text,
    activityEntries: isTransient(text) ? m.activityEntries : [...(m.activityEntries ?? []), text],
    statusSinceMs: at,
    turns: turn ? [...(m.turns ?? []), at] : m.turns,
  }))
}

// A message has one plan, where it was first made. Between runs, a plan changes
// where it was last seen.
function setPlan(state: ChatState, session: string | undefined, plan: Plan): ChatState {
  const isPlan = (block: ContentBlock) => block.type === 'plan'
  const put = (m: ChatMessage) =>
    blocksOf(m).some(isPlan)
      ? withLast(m, isPlan, () => ({ type: 'plan', plan }))
      : withBlock(m, { type: 'plan', plan })
  if (session !== undefined) return onCurrent(state, session, put)
  const going = current(state)
  const at = going >= 0 ? going : state.messages.findLastIndex((m) => blocksOf(m).some(isPlan))
  return { ...state, plan, messages: at < 0 ? state.messages : state.messages.with(at, put(state.messages[at]!)) }
}

// say adds a complete text: a notice of the system, the explanation of an open card, or an answer, unless the stream
// has shown it already.
function say(
  state: ChatState,
  session: string | undefined,
  { message, notice, retry }: Extract<ChatAction, { type: 'SAY' }>,
): ChatState {
  const isIt = (b: ContentBlock) => retry !== undefined && b.type === 'notice' && b.retry?.id === retry.id
  const explains = !notice && state.cards.some((card) => card.session === message.session)
  const block: ContentBlock = notice
    ? { type: 'notice', text: message.text, ...(retry === undefined ? {} : { retry }) }
    : explains
      ? { type: 'explanation', text: message.text }
      : { type: 'text', text: message.text, open: false }
  const put = (m: ChatMessage) => {
    if (blocksOf(m).some(isIt)) return withLast(m, isIt, () => block)
    if (notice || explains) return withBlock(m, block)
    return hasSaid(m, message.text) ? m : withSegment({ ...m, liveText: '' }, message.text)
  }
  const next = explains
    ? {
        ...state,
        cards: state.cards.map((card) => (card.session === message.session ? { ...card, explained: true } : card)),
      }
    : state
  if (session !== undefined) return onEntry(next, session, (e) => ({ ...e, message: put(e.message) }))
  const told = next.messages.findLastIndex((m) => blocksOf(m).some(isIt))
  const going = told >= 0 ? told : current(next)
  if (going >= 0) return { ...next, messages: next.messages.with(going, put(next.messages[going]!)) }
  const last = next.messages.at(-1)
  if (!notice && last?.role === 'agent' && hasSaid(last, message.text)) return next
  return {
    ...next,
    messages: [
      ...next.messages,
      { ...message, content: [block], ...(notice ? {} : { segments: [{ text: message.text }] }) },
    ],
  }
}

// onCurrent changes the current message.
function onCurrent(state: ChatState, session: string | undefined, change: (m: ChatMessage) => ChatMessage): ChatState {
  if (session !== undefined) return onEntry(state, session, (e) => ({ ...e, message: change(e.message) }))
  const at = current(state)
  return at < 0
    ? onLast(state, undefined, change)
    : { ...state, messages: state.messages.with(at, change(state.messages[at]!)) }
}

// onLast changes the last message, even if it has ended.
function onLast(state: ChatState, session: string | undefined, change: (m: ChatMessage) => ChatMessage): ChatState {
  if (session !== undefined) return onEntry(state, session, (e) => ({ ...e, message: change(e.message) }))
  const going = current(state)
  const at = going >= 0 ? going : state.messages.findLastIndex((m) => m.role === 'agent' && m.from !== 'system')
  return at < 0 ? state : { ...state, messages: state.messages.with(at, change(state.messages[at]!)) }
}

// onAnswered changes the last answer with any content: the report of a cancelled run comes after its end, and the user
// may have sent the next message already.
function onAnswered(state: ChatState, session: string | undefined, change: (m: ChatMessage) => ChatMessage): ChatState {
  if (session !== undefined) return onLast(state, session, change)
  const at = state.messages.findLastIndex(
    (m) => m.role === 'agent' && m.from !== 'system' && !(m.isGenerating === true && isEmpty(m)),
  )
  return at < 0
    ? onLast(state, session, change)
    : { ...state, messages: state.messages.with(at, change(state.messages[at]!)) }
}

// onEntry changes a sub-agent. Messages of a sub-agent whose start is missing have no place, and are dropped.
function onEntry(state: ChatState, id: string, change: (entry: SubagentTreeEntry) => SubagentTreeEntry): ChatState {
  const at = state.messages.findLastIndex((m) => m.subagentTree?.some((e) => e.id === id))
  if (at < 0) return state
  const message = state.messages[at]!
  return {
    ...state,
    messages: state.messages.with(at, {
      ...message,
      subagentTree: message.subagentTree?.map((e) => (e.id === id ? change(e) : e)),
    }),
  }
}
