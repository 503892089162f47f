// Descriptions of tool calls for people.

import { fields, list, str } from '../../wire/read'
import type { ToolUse } from './message'

interface Doing {
  verb: string // Read, Ran, …
  object: string // the exact name of the thing
}

function lines(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

// describe summarizes a call from its arguments.
export function describe({ tool, args }: Pick<ToolUse, 'tool' | 'args'>): Doing {
  const a = fields(args)
  switch (tool) {
    case 'read_file':
      return { verb: 'Read', object: str(a.path) }
    case 'write_file':
      return { verb: 'Write', object: str(a.path) }
    case 'edit_file':
      return { verb: 'Edit', object: str(a.path) }
    case 'apply_patch':
      return { verb: 'Change', object: patched(str(a.patch)).join(', ') }
    case 'list_files':
      return { verb: 'List', object: str(a.path) || 'files' }
    case 'find_files':
      return { verb: 'Find', object: str(a.pattern) }
    case 'search_files':
      return { verb: 'Search', object: str(a.pattern) }
    case 'shell':
      return { verb: 'Run', object: command(a.command) }
    case 'update_plan':
      return { verb: 'Update', object: 'the plan' }
    case 'ask_user':
      return { verb: 'Ask', object: list(a.questions, (q) => str(fields(q).question)).join(' ') }
    case 'delegate':
      return { verb: 'Delegate', object: `to ${str(a.agent_id)}: ${lines(str(a.task))}` }
    case 'schedule_follow_up':
      return { verb: 'Follow up', object: `in ${String(a.delay_seconds ?? '?')} s` }
    case 'finalize_task':
      return { verb: 'Finish', object: str(a.title) }
    default:
      return { verb: tool, object: '' }
  }
}

// command returns a command line as a person would type it. For a shell with a
// script, it returns the script.
function command(given: unknown): string {
  const words = list(given, str)
  const [shell, flag, script] = words
  if (words.length === 3 && /^(?:\/\S*\/)?(?:ba|z|da)?sh$/.test(shell ?? '') && /^-l?c$/.test(flag ?? ''))
    return lines(script ?? '')
  return words.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
}

// A Request is the request of a call, in its most readable form.
export interface Request {
  as: 'command' | 'patch' | 'json'
  text: string
}

// requestOf reads the arguments of a call.
export function requestOf({ tool, args }: Pick<ToolUse, 'tool' | 'args'>): Request {
  const a = fields(args)
  const path = str(a.path)
  if (tool === 'shell' && Array.isArray(a.command)) return { as: 'command', text: list(a.command, str).join(' ') }
  if (tool === 'apply_patch' && str(a.patch) !== '') return { as: 'patch', text: str(a.patch) }
  if (tool === 'write_file' && path !== '')
    return { as: 'patch', text: ['*** Begin Patch', `*** Add File: ${path}`, ...marked('+', str(a.content))].join('\n') }
  if (tool === 'edit_file' && path !== '')
    return {
      as: 'patch',
      text: [
        '*** Begin Patch',
        `*** Update File: ${path}`,
        '@@',
        ...marked('-', str(a.old_text)),
        ...marked('+', str(a.new_text)),
      ].join('\n'),
    }
  return { as: 'json', text: typeof args === 'string' ? args : JSON.stringify(args, null, 2) }
}

function marked(mark: string, text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n').map((line) => mark + line)
}

function patched(patch: string): string[] {
  return [...patch.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map((match) => match[1]!)
}

// summarize describes several calls in one line; calls of the same tool are counted.
export function summarize(tools: Pick<ToolUse, 'tool' | 'args'>[]): string {
  const groups: { tool: string; labels: string[] }[] = []
  for (const tool of tools) {
    const { verb, object } = describe(tool)
    const last = groups.at(-1)
    const label = lines(`${verb} ${short(tool.tool, object)}`)
    if (last?.tool === tool.tool) last.labels.push(label)
    else groups.push({ tool: tool.tool, labels: [label] })
  }
  return groups
    .map(({ labels }) => (labels.length > 2 ? `${labels[0]} and ${labels.length - 1} more` : labels.join(' · ')))
    .join(' · ')
}

// short removes the folders from a path.
function short(tool: string, object: string): string {
  return ['read_file', 'write_file', 'edit_file'].includes(tool) ? (object.split('/').at(-1) ?? object) : object
}
