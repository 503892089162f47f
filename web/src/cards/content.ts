import { parseDiff } from '../ui/unified'
import { editOf } from './show'

// A card needs a decision by a person. The chat, the inbox and the debug console get cards in different shapes. All
// show them with Card, and send the Reply in the shape of their route.

export type CardContent =
  // similar is the rule for similar calls that a person may allow.
  | { kind: 'approval'; tool: string; show: string; args?: string; why?: string; similar?: string }
  | { kind: 'question'; questions: Question[] }
  | { kind: 'call'; tool: string; text: string } // the outcome of a call is unknown

// A Question has the fields that both generated question types share.
export interface Question {
  question: string
  header?: string
  options?: readonly { label: string; description?: string | null; preview?: string | null }[]
  multi_select?: boolean
}

export type Reply =
  | { kind: 'approval'; decision: Decision; scope?: 'similar'; note?: string } // scope of always; default: exact
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

// titleOf returns the title of a card in three parts: before the name of a file or tool, the name, and after it.
export function titleOf(agent: string, content: CardContent): { before: string; tool: string; after: string } {
  const who = agent || 'The agent'
  if (content.kind === 'question') return { before: `${who} asks a question`, tool: '', after: '' }
  const does = doing(content.tool, content.kind === 'approval' ? content.show : '')
  return content.kind === 'approval'
    ? { before: `${who} wants to ${does.verb}`, tool: does.object, after: '' }
    : { before: `${who} began to ${does.verb}`, tool: does.object, after: ', and the outcome is unknown' }
}

// doing describes a call in words; object is a name that must be shown exactly. Only an unknown tool is shown by its
// name.
function doing(tool: string, show: string): { verb: string; object: string } {
  const files = parseDiff(editOf(tool, show) ?? '').map(({ from, to }) => to || from)
  const object = files.length === 1 ? files[0]! : ''
  switch (tool) {
    case 'shell':
      return { verb: 'run a command', object: '' }
    case 'write_file':
      return object === '' ? { verb: 'write a file', object } : { verb: 'write ', object }
    case 'edit_file':
      return object === '' ? { verb: 'edit a file', object } : { verb: 'edit ', object }
    case 'apply_patch':
      if (object !== '') return { verb: 'change ', object }
      return { verb: files.length > 1 ? `change ${files.length} files` : 'change files', object }
    case '':
      return { verb: 'use a tool', object: '' }
    default:
      return { verb: 'use ', object: tool }
  }
}
