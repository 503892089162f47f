// The cards of the bus: their content, and how they are answered. The bus sends approvals and calls of unknown outcome
// as questions with a special header and options.

import type { Answer, CardContent, Reply } from '../../cards/content'
import type { Card } from './message'

const labels: Record<string, string> = {
  allow: 'Allow once',
  always: 'Always allow exactly this',
  similar: 'Always allow similar', // its description is the rule
  deny: 'Deny',
  stop: 'Deny and stop the run',
  mark_done: 'It was done',
  rerun: 'Run it again',
  abandon: 'Stop the run',
}

// contentOf drops nothing: the shown text of an approval is exactly the text that the server sent.
export function contentOf({ questions }: Pick<Card, 'questions'>): CardContent {
  const [first] = questions
  if (questions.length !== 1 || first === undefined) return { kind: 'question', questions }
  if (first.header === 'Permission') {
    const cut = first.question.indexOf('\n\n')
    const head = cut < 0 ? first.question : first.question.slice(0, cut)
    const show = cut < 0 ? '' : first.question.slice(cut + 2)
    const [, tool = head, why] = /^Allow (.+?)\?(?: \(([\s\S]*)\))?$/.exec(head) ?? []
    const similar = first.options?.find(({ label }) => label === labels.similar)?.description ?? undefined
    return { kind: 'approval', tool, show, why, similar }
  }
  if (first.header === 'Unknown') {
    return { kind: 'call', tool: /^([\w.-]+):/.exec(first.question)?.[1] ?? '', text: first.question }
  }
  return { kind: 'question', questions }
}

// answersTo converts the answers of a card for the bus.
export function answersTo(reply: Reply): Answer[] {
  if (reply.kind === 'question') return reply.answers
  const name = reply.kind === 'approval' ? (reply.scope ?? reply.decision) : reply.resolution
  return [{ selected: [labels[name] ?? name], custom_text: reply.note }]
}

// askedTools returns the tools of open approvals.
export function askedTools(cards: Card[]): Set<string> {
  return new Set(cards.map(contentOf).flatMap((content) => (content.kind === 'approval' ? [content.tool] : [])))
}

// openQuestion returns the latest open question. An approval is not a question.
export function openQuestion(cards: Card[]): Card | undefined {
  return cards.findLast((card) => contentOf(card).kind === 'question')
}
