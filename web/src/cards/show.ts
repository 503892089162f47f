import { parseDiff } from '../ui/unified'
import { tricky } from '../ui/visible'

// What an approval shows, taken apart. The server writes it as one text
// (tool/shell.go), so that every client can show it; here the parts get places of
// their own. Whatever is not exactly that text is shown as it came.

export interface Shown {
  heading: string // where, and for how long
  command: string
  parts: string[] // the commands it is made of, if there are several
  because?: string
  risks: string[]
}

const shape =
  /^(Run in the workspace[^\n]*:)\n\n([^\n]+)(?:\n\nThese commands are in it:((?:\n {2}[^\n]*)+))?(?:\n\nThis asks because ([\s\S]*?)\.)?(?:\nNote that it ([^\n]*)\.)?$/

// readShow is undefined for what is not a command, or not all of which would be
// shown by its parts.
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

function written({ heading, command, parts, because, risks }: Shown): string {
  let text = `${heading}\n\n${command}`
  if (parts.length > 0) text += '\n\nThese commands are in it:' + parts.map((part) => '\n  ' + part).join('')
  if (because !== undefined) text += `\n\nThis asks because ${because}.`
  if (risks.length > 0) text += `\nNote that it ${risks.join(', ')}.`
  return text
}

// risky says whether the answer that changes nothing is the one to have at hand:
// always, but for commands nothing was noted about and changes by which nothing is
// lost. Whether writing a file replaces one is for the caller to find out.
export function risky(tool: string, show: string, args = '', why?: string, replaces = true): boolean {
  if (why !== undefined || tricky(show + args).length > 0) return true
  if (tool === 'write_file') return replaces
  const shown = readShow(tool, show)
  if (shown !== undefined) return shown.risks.length > 0
  const patch = editOf(tool, args, show)
  return patch === undefined || deleted(patch).length > 0
}

// deleted are the files that a patch would delete.
export function deleted(patch: string): string[] {
  return parseDiff(patch).flatMap((file) => (file.to === '' && file.from !== '' ? [file.from] : []))
}

// editOf makes a patch of the arguments of a tool that changes files, for showing.
export function editOf(tool: string, args: string, show: string): string | undefined {
  if (tool === 'apply_patch') return show
  if (tool !== 'edit_file' && tool !== 'write_file') return undefined
  let given: { path?: unknown; old_text?: unknown; new_text?: unknown; content?: unknown }
  try {
    given = JSON.parse(args) as typeof given
  } catch {
    return undefined
  }
  const { path, old_text, new_text, content } = given
  if (typeof path !== 'string' || path.includes('\n')) return undefined
  const marked = (mark: string, text: string) =>
    text === ''
      ? ''
      : text
          .replace(/\n$/, '')
          .split('\n')
          .map((line) => mark + line + '\n')
          .join('')
  if (tool === 'write_file')
    return typeof content === 'string'
      ? `*** Begin Patch\n*** Update File: ${path}\n${marked('+', content)}*** End Patch\n`
      : undefined
  if (typeof old_text !== 'string' || typeof new_text !== 'string') return undefined
  return `*** Begin Patch\n*** Update File: ${path}\n@@\n${marked('-', old_text)}${marked('+', new_text)}*** End Patch\n`
}
