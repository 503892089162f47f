import { fields, type Fields } from '../../wire/read'
import type { ContentBlock, SubagentTreeEntry } from './message'

export type Doing = Extract<ContentBlock, { type: 'thinking' | 'tool_use' }>
type Group = { doing: Doing[] } | { helpers: SubagentTreeEntry[] } | { block: Exclude<ContentBlock, Doing> }

// grouped joins the tool calls between two texts into one group. A delegating call is shown as its sub-agent, and a
// planning call as the plan.
export function grouped(content: ContentBlock[], tree: SubagentTreeEntry[]): Group[] {
  const groups: Group[] = []
  const left = tree.filter((entry) => entry.parent === undefined)
  const planned = content.some((block) => block.type === 'plan')
  let apart = false // a block that is not shown lies between two texts
  for (const block of content) {
    if (
      planned &&
      block.type === 'tool_use' &&
      block.tool === 'update_plan' &&
      (block.status === 'done' || block.status === 'running')
    ) {
      apart = true // the plan shows it
      continue
    }
    const last = groups.at(-1)
    const helper =
      block.type === 'tool_use' && block.tool === 'delegate' ? takeHelper(left, fields(block.args)) : undefined
    if (helper !== undefined) {
      if (last !== undefined && 'helpers' in last) last.helpers.push(helper)
      else groups.push({ helpers: [helper] })
    } else if (block.type === 'thinking' || block.type === 'tool_use') {
      if (last !== undefined && 'doing' in last) last.doing.push(block)
      else groups.push({ doing: [block] })
    } else if (block.type === 'text' && !apart && last !== undefined && 'block' in last && last.block.type === 'text') {
      last.block = { ...block, text: last.block.text + block.text } // one text in two parts
    } else if (block.type === 'text' && last !== undefined && 'block' in last && last.block.type === 'cut')
      groups.push({ block: { ...block, text: openFence(groups.at(-2)) + block.text } })
    else if (block.type !== 'text' || block.text.trim() !== '') groups.push({ block })
    apart = false
  }
  return left.length > 0 ? [{ helpers: left }, ...groups] : groups
}

// openFence reopens a code block that was open when the text broke off.
function openFence(group: Group | undefined): string {
  if (group === undefined || !('block' in group) || group.block.type !== 'text') return ''
  const fences = group.block.text.match(/^ {0,3}```.*$/gm) ?? []
  return fences.length % 2 === 0 ? '' : fences.at(-1) + '\n'
}

function takeHelper(left: SubagentTreeEntry[], args: Fields): SubagentTreeEntry | undefined {
  const at = left.findIndex((entry) => entry.agent === args.agent_id && entry.task === args.task)
  return at < 0 ? undefined : left.splice(at, 1)[0]
}
