// A card is something only a person can decide. The chat, the inbox and the debug console are told of it in shapes of
// their own; they all show it with Card, and send the Reply in the shape that their route takes.

export type CardContent =
  // similar is the rule for similar calls that a person may allow.
  | { kind: 'approval'; tool: string; show: string; args?: string; why?: string; similar?: string }
  | { kind: 'question'; questions: Question[] }
  | { kind: 'call'; tool: string; text: string } // it is not known whether it happened

// A Question has the fields that both generated question types share.
export interface Question {
  question: string
  header?: string
  options?: readonly { label: string; description?: string | null; preview?: string | null }[]
  multi_select?: boolean
}

export type Reply =
  | { kind: 'approval'; decision: Decision; scope?: 'similar'; note?: string } // scope: of always; else exact
  | { kind: 'question'; answers: Answer[] }
  | { kind: 'call'; resolution: Resolution; note?: string }

export type Decision = 'allow' | 'always' | 'deny' | 'stop'
export type Resolution = 'mark_done' | 'rerun' | 'abandon'

// An Answer holds the chosen options and the typed text.
export interface Answer {
  selected: string[]
  custom_text?: string
}

// asLists joins the chosen options and the typed text of each answer into one list.
export function asLists(answers: Answer[]): string[][] {
  return answers.map(({ selected, custom_text }) => (custom_text === undefined ? selected : [...selected, custom_text]))
}

const kinds = { approval: 'Approval', question: 'Question', call: 'Unknown outcome' }

export function kindOf(content: CardContent): string {
  return kinds[content.kind]
}

// titleOf returns the title of a card in three parts: before the name of the tool, the name, and after it.
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
