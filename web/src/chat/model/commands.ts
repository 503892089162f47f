// Prefixes of a message: commands of the console, skills, and agents.

import type { FileEntry } from '../../wire/bus.generated'
import type { Agent, Skill } from '../../wire/native.generated'

export interface Suggestion {
  insert: string
  name: string
  about: string
  file?: string // of the project, to be attached
}

const own: Suggestion[] = [
  { insert: '/plan ', name: '/plan', about: 'propose a plan first; nothing is changed until you approve it' },
  { insert: '/compact', name: '/compact', about: 'compact the context that the model reads' },
  { insert: '/clear', name: '/clear', about: 'delete this conversation and start a new one' },
  { insert: '/help', name: '/help', about: 'list the commands and keys' },
]

export function commands(skills: Skill[]): Suggestion[] {
  const named = new Set(own.map((command) => command.name))
  return [
    ...own,
    ...skills
      .filter((skill) => !named.has('/' + skill.name))
      .map((skill) => ({
        insert: `/${skill.name} `,
        name: '/' + skill.name,
        about: [skill.argument_hint, skill.description].filter(Boolean).join(' — '),
      })),
  ]
}

// suggest lists the completions of a prefix; it is empty for plain text.
export function suggest(text: string, skills: Skill[], agents: Agent[]): Suggestion[] {
  const slash = /^\/([\w-]*)$/.exec(text)?.[1]
  if (slash !== undefined)
    return commands(skills).filter((command) => command.name.startsWith('/' + slash.toLowerCase()))
  const at = /^@([\w-]*)$/.exec(text)?.[1]
  if (at !== undefined)
    return agents
      .filter((agent) => agent.id.startsWith(at.toLowerCase()))
      .map((agent) => ({ insert: `@${agent.id} `, name: '@' + agent.id, about: agent.description }))
  return []
}

// A Mention is the name of a file that is being typed at the end of a message: `@src/ma`.
export interface Mention {
  before: string // the text before the @
  folder: string // '' is the top of the project
  prefix: string // the beginning of a name in the folder
}

export function mentioned(text: string): Mention | undefined {
  const [, before, path] = /^((?:[\s\S]*\s)?)@([^\s@]*)$/.exec(text) ?? []
  if (before === undefined || path === undefined) return undefined
  const slash = path.lastIndexOf('/')
  return { before, folder: path.slice(0, Math.max(slash, 0)), prefix: path.slice(slash + 1) }
}

const mostFiles = 20

// suggestFiles lists the entries of the mentioned folder that match the prefix. A folder can be completed further.
export function suggestFiles({ before, prefix }: Mention, entries: FileEntry[]): Suggestion[] {
  return entries
    .filter(({ name, path }) => name.toLowerCase().startsWith(prefix.toLowerCase()) && !/\s/.test(path))
    .slice(0, mostFiles)
    .map(({ path, isDir }) =>
      isDir
        ? { insert: `${before}@${path}/`, name: `@${path}/`, about: 'folder' }
        : { insert: `${before}@${path} `, name: `@${path}`, about: 'attach this file of the project', file: path },
    )
}

type Meant = { do: 'clear' } | { do: 'compact' } | { do: 'help' } | { do: 'say'; message: string; mode?: 'plan' }

// meaning parses a message before it is sent. The server handles skills; unknown commands go to the model.
export function meaning(text: string): Meant {
  const trimmed = text.trim()
  switch (trimmed) {
    case '/clear':
      return { do: 'clear' }
    case '/compact':
      return { do: 'compact' }
    case '/help':
    case '/plan':
      return { do: 'help' }
  }
  const plan = /^\/plan\s+(\S[\s\S]*)$/.exec(trimmed)?.[1]
  return plan === undefined ? { do: 'say', message: trimmed } : { do: 'say', message: plan, mode: 'plan' }
}
