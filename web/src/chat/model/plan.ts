import type { Plan } from '../../wire/bus.generated'

// progress counts the items that the agent has marked as done. When a run ends, the server sets the other items of its
// plan to skipped: it is not known whether they were done.
export function progress({ items }: Pick<Plan, 'items'>): string {
  const done = items.filter((item) => item.status === 'done').length
  const unmarked = items.filter((item) => item.status === 'skipped').length
  return unmarked === 0 ? `${done} of ${items.length}` : `${done} done, ${unmarked} not marked`
}

// asText returns a plan as text for editing.
export function asText(plan: Plan): string {
  return (
    plan.plan_text ??
    [
      plan.summary,
      ...plan.items.map(
        (item, at) => `${at + 1}. ${item.title}${item.description === undefined ? '' : `: ${item.description}`}`,
      ),
    ]
      .filter((line) => line !== '')
      .join('\n')
  )
}
