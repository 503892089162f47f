import type { Plan } from '../../wire/bus.generated'

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
