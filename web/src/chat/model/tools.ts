import { lasting } from '../../ui/time'
import type { ToolUse } from './message'

// statusOf is the status of a call. A call that needs approval waits, and is not running.
export function statusOf(tool: ToolUse, asked: ReadonlySet<string>, live: boolean): string {
  if (tool.endedMs !== undefined) return tool.status
  if (!live) return 'cancelled'
  return asked.has(tool.tool) ? 'waiting' : 'running'
}

// group keeps calls of one tool in a row together, if there are three or more.
export function group(tools: ToolUse[]): ToolUse[][] {
  const groups: ToolUse[][] = []
  for (const tool of tools) {
    const last = groups.at(-1)
    if (last?.[0]?.tool === tool.tool) last.push(tool)
    else groups.push([tool])
  }
  return groups.flatMap((some) => (some.length < 3 ? some.map((tool) => [tool]) : [some]))
}

const order = ['running', 'waiting', 'unknown', 'failed', 'blocked', 'denied', 'cancelled', 'done']

export function worst(statuses: string[]): string {
  return order.find((status) => statuses.includes(status)) ?? 'done'
}

const never = ['denied', 'blocked', 'cancelled']

// took is how long a call ran; empty if it took almost no time, or did not run at all.
export function took({ status, startedMs, endedMs, ranMs }: ToolUse): string {
  if (endedMs === undefined || (ranMs === undefined && never.includes(status))) return ''
  const ran = ranMs ?? endedMs - startedMs
  return ran < 50 ? '' : lasting(ran)
}
