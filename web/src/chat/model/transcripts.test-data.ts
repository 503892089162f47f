// The transcripts that also test the Go projectors, as a client of the bus
// receives them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UiMessage } from '../../wire/bus.generated'
import { readMessage } from '../../wire/read'

const folder = join(import.meta.dirname, '../../../../dialect/eventbus/testdata')

interface Transcript {
  name: string
  session: string // the root session of the conversation
  messages: UiMessage[]
}

// sections reads a txtar file: a line "-- name --" begins one.
function sections(file: string): { name: string; lines: string[] }[] {
  const list: { name: string; lines: string[] }[] = []
  for (const line of readFileSync(join(folder, file), 'utf8').split('\n')) {
    const name = /^-- (.+) --$/.exec(line)?.[1]
    if (name !== undefined) list.push({ name, lines: [] })
    else if (line !== '' && !line.startsWith('#')) list.at(-1)?.lines.push(line)
  }
  return list
}

// transcripts returns all messages that a client receives from the beginning.
export function transcripts(): Transcript[] {
  const list: Transcript[] = []
  for (const file of readdirSync(folder).filter((f) => f.endsWith('.txtar'))) {
    let log: string[] = []
    for (const { name, lines } of sections(file)) {
      if (name === 'log') log = lines
      if (name !== 'frames') continue
      const messages = lines
        .filter((line) => line.startsWith('{'))
        .flatMap((line) => readMessage(JSON.parse(line)) ?? [])
      const session = messages.find((m) => m.session_id !== undefined)?.session_id ?? ''
      list.push({ name: `${file} ${list.length}: ${log.length} events`, session, messages })
    }
  }
  return list
}

// settled returns the same messages as history sends them: for a finished
// output only its end, with the whole text.
export function settled(messages: UiMessage[]): UiMessage[] {
  const ended = new Map<UiMessage, string>()
  const dropped = new Set<UiMessage>()
  const open = new Map<string, UiMessage[]>()
  for (const m of messages.filter((x) => x.kind === 'token')) {
    const session = m.session_id ?? ''
    const pieces = [...(open.get(session) ?? []), m]
    if (m.phase !== 'done') {
      open.set(session, pieces)
      continue
    }
    open.delete(session)
    ended.set(m, pieces.map((piece) => piece.text ?? '').join(''))
    pieces.slice(0, -1).forEach((piece) => dropped.add(piece))
  }
  return messages.filter((m) => !dropped.has(m)).map((m) => (ended.has(m) ? { ...m, text: ended.get(m) } : m))
}
