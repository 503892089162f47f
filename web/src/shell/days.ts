// Sessions by the day of their last change, in local days.

interface Group<T> {
  day: string
  items: T[]
}

export function byDay<T>(items: readonly T[], at: (item: T) => string, now: Date): Group<T>[] {
  const groups: Group<T>[] = []
  for (const item of items) {
    const day = dayOf(new Date(at(item)), now)
    const last = groups.at(-1)
    if (last?.day === day) last.items.push(item)
    else groups.push({ day, items: [item] })
  }
  return groups
}

function dayOf(at: Date, now: Date): string {
  const days = midnights(now) - midnights(at)
  if (days <= 0) return 'Today'
  if (days === 1) return 'Yesterday'
  if (days < 7) return 'Last 7 days'
  if (days < 30) return 'Last 30 days'
  return 'Older'
}

// midnights counts local days; a day on which clocks change is one day too.
function midnights(at: Date): number {
  return Math.round(Date.UTC(at.getFullYear(), at.getMonth(), at.getDate()) / 86_400_000)
}
