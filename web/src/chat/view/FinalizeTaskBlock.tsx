import type { Task } from '../../wire/bus.generated'
import { CheckIcon } from '../../ui/icons'
import { Prose } from './Prose'

// FinalizeTaskBlock is the result of a run, as the agent described it.
export function FinalizeTaskBlock({ task }: { task: Task }) {
  return (
    <section aria-label="Task" className="rounded-lg border border-line bg-raised px-4 py-3">
      <h2 className="flex items-center gap-2 text-sm font-semibold">
        <CheckIcon className="shrink-0 text-done" />
        <span className="min-w-0 grow break-words">
          <Prose>{task.title || 'Task'}</Prose>
        </span>
        <span className="text-xs font-normal text-ink-soft">finished</span>
      </h2>
      <Items name="User stories" items={task.user_stories} />
      <Items name="Acceptance criteria" items={task.acceptance_criteria} />
    </section>
  )
}

function Items({ name, items }: { name: string; items: string[] }) {
  if (items.length === 0) return null
  return (
    <div className="mt-2 text-sm">
      <h3 className="text-xs text-ink-soft">{name}</h3>
      <ul className="list-disc pl-5">
        {items.map((item, at) => (
          <li key={at} className="break-words">
            <Prose>{item}</Prose>
          </li>
        ))}
      </ul>
    </div>
  )
}
