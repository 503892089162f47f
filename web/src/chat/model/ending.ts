import type { ChatState } from './chatReducer'
import { badEnds, type ChatMessage } from './message'

// lastAnswer is the last answer of the agent, finished or not.
export function lastAnswer(state: Pick<ChatState, 'messages'>): ChatMessage | undefined {
  return state.messages.findLast((m) => m.role === 'agent' && m.from !== 'system')
}

// wholeRun is the last answer with the parts of its run that came before a steering message.
export function wholeRun(state: Pick<ChatState, 'messages'>): ChatMessage | undefined {
  const answers = state.messages.filter((m) => m.role === 'agent' && m.from !== 'system')
  const last = answers.at(-1)
  if (last === undefined) return undefined
  // A part that a steering message ended has no outcome: its run went on.
  const begin = answers.slice(0, -1).findLastIndex((m) => m.outcome !== undefined) + 1
  const parts = answers.slice(begin)
  if (parts.length === 1) return last
  let turns = 0
  const content = parts.flatMap((part) => {
    const blocks = (part.content ?? []).map((block) =>
      block.type === 'tool_use' ? { ...block, turn: block.turn + turns } : block,
    )
    turns += part.turns?.length ?? 0
    return blocks
  })
  return {
    ...last,
    content,
    turns: parts.flatMap((part) => part.turns ?? []),
    timestampMs: parts[0]!.timestampMs,
    waitedMs: parts.reduce((sum, part) => sum + (part.waitedMs ?? 0), 0) || undefined,
    toolCount: parts.reduce((sum, part) => sum + (part.toolCount ?? 0), 0),
  }
}

// repeatable returns the message whose answer ended badly, and that answer, if no message came after it.
export function repeatable(state: ChatState): { said: ChatMessage; answer: ChatMessage } | undefined {
  const answer = lastAnswer(state)
  const said = state.messages.findLast((m) => m.role === 'user')
  if (answer === undefined || said === undefined || answer.isGenerating || state.waiting.length > 0) return undefined
  if (!badEnds.has(answer.outcome ?? '') || answer.outcome === 'halted') return undefined
  if (state.messages.indexOf(said) > state.messages.indexOf(answer) || said.text.trim() === '') return undefined
  return { said, answer }
}

const endings: Record<string, string> = {
  cancelled: 'was stopped',
  denied: 'was stopped: a request was denied',
  failed: 'has failed',
  interrupted: 'was interrupted',
  halted: 'was halted',
}

// announcement is the text about the conversation for screen readers.
export function announcement(state: ChatState, agent: string, running: boolean): string {
  if (state.cards.length > 0) return 'A request waits for your answer.'
  if (running) return `${agent} is working.`
  const answer = lastAnswer(state)
  return answer === undefined ? '' : `${agent} ${endings[answer.outcome ?? ''] ?? 'has finished'}.`
}
