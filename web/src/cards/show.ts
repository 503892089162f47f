import { parseDiff } from '../ui/unified'
import { tricky } from '../ui/visible'

// Parsing the text of an approval. The server writes one text (tool/shell.go), so that every client can show it; the
// console shows its parts separately. A text in any other shape is shown unchanged.

interface Shown {
  heading: string // where, and for how long
  command: string
  parts: string[] // the commands that it consists of, if there are several
  because?: string
  risks: string[]
}

const shape = new RegExp(
  '^(Run in the workspace[^\\n]*:)\\n\\n([^\\n]+)' +
    '(?:\\n\\nThese commands are in it:((?:\\n {2}[^\\n]*)+))?' +
    '(?:\\n\\nThis asks because ([\\s\\S]*?)\\.)?' +
    '(?:\\nNote that it ([^\\n]*)\\.)?$',
)

// readShow returns undefined if the text is not a command, or if its parts would not show all of it.
export function readShow(tool: string, show: string): Shown | undefined {
  if (tool !== 'shell') return undefined
  const found = shape.exec(show)
  if (found === null) return undefined
  const [, heading = '', command = '', listed = '', because, noted] = found
  const shown: Shown = {
    heading,
    command,
    parts: listed === '' ? [] : listed.slice(3).split('\n  '),
    because,
    risks: noted === undefined ? [] : noted.split(', '),
  }
  return written(shown) === show ? shown : undefined
}

// allowedText is the text of an allowed call in a list. For a command at the top of the workspace it is the command
// alone, without the reason why it asked.
export function allowedText(tool: string, text: string): string {
  const shown = readShow(tool, text)
  return shown?.heading.startsWith('Run in the workspace, for at most ') ? shown.command : text
}

// headingText writes a round duration as people do: Go writes two minutes as 2m0s.
export function headingText(heading: string): string {
  return heading.replace(/\b(\d+)m0s\b/, '$1 min')
}

function written({ heading, command, parts, because, risks }: Shown): string {
  let text = `${heading}\n\n${command}`
  if (parts.length > 0) text += '\n\nThese commands are in it:' + parts.map((part) => '\n  ' + part).join('')
  if (because !== undefined) text += `\n\nThis asks because ${because}.`
  if (risks.length > 0) text += `\nNote that it ${risks.join(', ')}.`
  return text
}

// risky says whether the answer that changes nothing should be the default. It
// is, except for commands without a warning, and for changes that lose nothing.
// The caller finds out whether writing a file replaces one.
export function risky(tool: string, show: string, args = '', why?: string, replaces = true): boolean {
  const patch = editOf(tool, show)
  if (why !== undefined || tricky(show + args + (patch ?? '')).length > 0) return true
  if (tool === 'write_file') return replaces
  const shown = readShow(tool, show)
  if (shown !== undefined) return shown.risks.length > 0
  return patch === undefined || deleted(patch).length > 0
}

// deleted lists the files that a patch would delete.
export function deleted(patch: string): string[] {
  return parseDiff(patch).flatMap((file) => (file.to === '' && file.from !== '' ? [file.from] : []))
}

const quotedName = '("(?:[^"\\\\]|\\\\.)*")' // as Go quotes it
const edit = new RegExp(`^Edit ${quotedName}, [^\\n]*:\\n\\n((?:-[^\\n]*\\n)+)((?:\\+[^\\n]*\\n)+)$`)
const write = new RegExp(`^Write \\d+ bytes to ${quotedName}, replacing it if it exists:\\n\\n([^]*)$`)

// editOf turns the text of a call that changes a file into a patch for display; undefined if the text has another
// shape.
export function editOf(tool: string, show: string): string | undefined {
  switch (tool) {
    case 'apply_patch':
      return show
    case 'edit_file': {
      const [, name = '', before = '', after = ''] = edit.exec(show) ?? []
      const bothEnd = before.endsWith('\n-\n') && after.endsWith('\n+\n') // a final newline is not a line of its own
      const cut = bothEnd ? -2 : undefined
      return patchOf(name, '@@\n' + before.slice(0, cut) + after.slice(0, cut))
    }
    case 'write_file': {
      const [, name = '', content = ''] = write.exec(show) ?? []
      const lines = content === '' ? [] : content.replace(/\n$/, '').split('\n')
      return patchOf(name, lines.map((line) => `+${line}\n`).join(''))
    }
  }
  return undefined
}

// editHeading says where an edit replaces text. The diff below it names the file.
export function editHeading(show: string): string {
  const first = show.slice(0, show.indexOf('\n'))
  if (first.endsWith(', in the one place where this stands:')) return 'Replaces the only occurrence of this text:'
  if (first.endsWith(', wherever this stands:')) return 'Replaces every occurrence of this text:'
  return first
}

// writtenFile returns the name of the file that the call in an approval's text would write.
export function writtenFile(show: string): string | undefined {
  return unquoted(write.exec(show)?.[1] ?? '')
}

function patchOf(name: string, lines: string): string | undefined {
  const path = unquoted(name)
  if (path === undefined || path.includes('\n')) return undefined
  return `*** Begin Patch\n*** Update File: ${path}\n${lines}*** End Patch\n`
}

function unquoted(name: string): string | undefined {
  try {
    return JSON.parse(name) as string
  } catch {
    return undefined // Go has escapes that JSON has not
  }
}
