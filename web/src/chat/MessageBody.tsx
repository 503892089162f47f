import type { AskUser, FileChange, Plan, Task } from './wire'
import { AskUserCard } from './AskUserCard'
import { ChangeReportBlock } from './ChangeReportBlock'
import { useChat } from './chatContext'
import { FinalizeTaskBlock } from './FinalizeTaskBlock'
import { MarkdownContent } from './MarkdownContent'
import { PlanBlock } from './PlanBlock'
import { fields, num, readAskUser, readFiles, readPlan, readTask } from './read'

export type Special =
  | { type: 'plan'; plan: Plan }
  | { type: 'finalize_task'; task: Task }
  | { type: 'change_report'; files: FileChange[]; truncated: number }
  | { type: 'ask_user'; asked: AskUser }

// special reads a text that is JSON of a type the console knows; null: it is text.
export function special(text: string): Special | null {
  if (!/^\s*\{/.test(text) || !/\}\s*$/.test(text)) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  const f = fields(value)
  switch (f.type) {
    case 'plan':
      return { type: 'plan', plan: readPlan(f.plan ?? f) }
    case 'finalize_task':
      return { type: 'finalize_task', task: readTask(f.task ?? f) }
    case 'change_report':
      return { type: 'change_report', files: readFiles(f.files), truncated: num(f.truncated_count) ?? 0 }
    case 'ask_user':
      return { type: 'ask_user', asked: readAskUser(f) }
    default:
      return null
  }
}

// MessageBody is what was said. A model can write anything, cards too: what it
// writes shows as what it is called, and decides nothing.
export function MessageBody({ text, live }: { text: string; live?: boolean }) {
  const { cards } = useChat()
  const block = live ? null : special(text)
  switch (block?.type) {
    case 'plan':
      return <PlanBlock plan={block.plan} />
    case 'finalize_task':
      return <FinalizeTaskBlock task={block.task} />
    case 'change_report':
      return <ChangeReportBlock files={block.files} truncated={block.truncated} />
    case 'ask_user': {
      const open = cards.find((card) => card.question_id === block.asked.question_id)
      return open === undefined ? (
        <AskUserCard card={{ ...block.asked, agent: '', session: '', askedMs: 0 }} closed />
      ) : null // it is shown where it can be answered
    }
    default:
      return <MarkdownContent text={text} live={live} />
  }
}
