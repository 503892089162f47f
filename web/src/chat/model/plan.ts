import type { Plan } from '../../wire/bus.generated'

// progress counts the items that the agent has marked as done. The server sets the other items of a plan to skipped
// when its run ends: nobody knows whether they were done.
export function progress({ items }: Pick<Plan, 'items'>): string {
  const done = items.filter((item) => item.status === 'done').length
  const unmarked = items.filter((item) => item.status === 'skipped').length
  return unmarked === 0 ? `${done} of ${items.length}` : `${done} done, ${unmarked} not marked`
}

// asText is a plan to be edited.
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
