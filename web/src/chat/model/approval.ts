// What an approval says, taken apart for showing. Nothing is left out: the parts
// are of the text the server sent, which is what will be done.

import { tricky } from '../../ui/visible'
import type { Card } from './message'
import type { Question } from '../../wire/bus.generated'

export interface Approval {
  tool: string
  why: string // it asks, if that is not as usual
  show: string // exactly what will be done
  risks: string[] // what a person should know before
  patch: boolean // show is a change of files
}

const tricks: Record<string, string> = {
  ansi: 'It has terminal escape sequences in it',
  control: 'It has control characters in it',
  bidi: 'It has characters in it that change the direction of text',
  invisible: 'It has characters in it that cannot be seen',
  lookalike: 'It has letters in it that look like others',
}

export function approvalOf(question: Question): Approval {
  const cut = question.question.indexOf('\n\n')
  const head = cut < 0 ? question.question : question.question.slice(0, cut)
  const show = cut < 0 ? '' : question.question.slice(cut + 2)
  const parts = /^Allow (.+?)\?(?: \(([\s\S]*)\))?$/.exec(head)
  const why = parts?.[2] ?? ''
  const risks = why === '' ? [] : [why]
  const noted = /\nNote that it (.+)\.$/.exec(show)?.[1]
  if (noted !== undefined) risks.push(...noted.split(', ').map((note) => 'It ' + note))
  for (const trick of tricky(show)) if (tricks[trick] !== undefined) risks.push(tricks[trick])
  return { tool: parts?.[1] ?? head, why, show, risks, patch: /^\*\*\* Begin Patch|^diff --git |^--- /m.test(show) }
}

// askedTools are the tools of approvals that wait.
export function askedTools(cards: Card[]): Set<string> {
  const names = cards.flatMap((card) =>
    card.questions.filter((q) => q.header === 'Permission').map((q) => /^Allow (\S+)\?/.exec(q.question)?.[1] ?? ''),
  )
  return new Set(names.filter((name) => name !== ''))
}
