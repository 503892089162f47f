import type { AskUser, FileChange, Plan, Task } from '../../wire/bus.generated'
import { fields, num, readAskUser, readFiles, readPlan, readTask } from '../../wire/read'

type Special =
  | { type: 'plan'; plan: Plan }
  | { type: 'finalize_task'; task: Task }
  | { type: 'change_report'; files: FileChange[]; truncated: number }
  | { type: 'ask_user'; asked: AskUser }

// special reads a text that is JSON of a type the console knows; null: it is
// plain text.
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
