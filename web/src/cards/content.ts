// A card is something only a person can decide. The chat, the inbox and the debug console are told of it in shapes of
// their own; they all show it with Card, and send the Reply in the shape that their route takes.

export type CardContent =
  | { kind: 'approval'; tool: string; show: string; args?: string; why?: string }
  | { kind: 'question'; questions: Question[] }
  | { kind: 'call'; tool: string; text: string } // it is not known whether it happened

// A Question is what both generated shapes of one have in common.
export interface Question {
  question: string
  header?: string
  options?: readonly { label: string; description?: string | null; preview?: string | null }[]
  multi_select?: boolean
}

export type Reply =
  | { kind: 'approval'; decision: Decision; note?: string }
  | { kind: 'question'; answers: Answer[] }
  | { kind: 'call'; resolution: Resolution; note?: string }

export type Decision = 'allow' | 'always' | 'deny' | 'stop'
export type Resolution = 'mark_done' | 'rerun' | 'abandon'

// An Answer is what was chosen, and what was typed besides.
export interface Answer {
  selected: string[]
  custom_text?: string
}

// asLists are the answers where what was typed is one more choice.
export function asLists(answers: Answer[]): string[][] {
  return answers.map(({ selected, custom_text }) => (custom_text === undefined ? selected : [...selected, custom_text]))
}

const kinds = { approval: 'Approval', question: 'Question', call: 'Unknown outcome' }

export function kindOf(content: CardContent): string {
  return kinds[content.kind]
}

// titleOf says in a sentence what the card is about: its parts before, as and after the name of the tool.
export function titleOf(agent: string, content: CardContent): { before: string; tool: string; after: string } {
  const who = agent || 'The agent'
  switch (content.kind) {
    case 'approval':
      return { before: `${who} wants to use `, tool: content.tool, after: '' }
    case 'question':
      return { before: `${who} asks a question`, tool: '', after: '' }
    case 'call':
      return { before: `${who} called `, tool: content.tool || 'a tool', after: ', and the outcome is unknown' }
  }
}
