// Parses changes to files: unified diffs of git, and the patches of apply_patch (docs/patch.md). Nothing is dropped: a
// line that does not fit is kept as a note.

export type Mark = 'same' | 'add' | 'remove'

export interface Line {
  mark: Mark
  text: string
  before?: number // its number in the old file, if that is known
  after?: number
  open?: boolean // it is the last line of the file, without a newline
}

export interface Hunk {
  heading: string // the text after @@
  lines: Line[]
}

export interface FileDiff {
  from: string // '' if the file is new
  to: string // '' if it is deleted
  notes: string[] // mode, similarity, binary, "... (truncated)"
  hunks: Hunk[]
}

// A Row shows a line of the old file beside one of the new.
interface Row {
  left?: Line
  right?: Line
}

const hunkHeader = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/

export function parseDiff(text: string): FileDiff[] {
  const files: FileDiff[] = []
  let file: FileDiff | undefined
  let hunk: Hunk | undefined
  let patch = false // inside *** Begin Patch, where hunks have no counts
  let before = 0
  let after = 0
  let oldLeft = 0
  let newLeft = 0

  const begin = (from: string, to: string) => {
    file = { from, to, notes: [], hunks: [] }
    hunk = undefined
    oldLeft = newLeft = 0
    files.push(file)
  }
  const note = (line: string) => {
    if (file === undefined) begin('', '')
    file!.notes.push(line)
  }
  const open = (heading: string) => {
    if (file === undefined) begin('', '')
    hunk = { heading, lines: [] }
    file!.hunks.push(hunk)
  }
  const put = (mark: Mark, content: string) => {
    if (hunk === undefined) open('')
    const line: Line = { mark, text: content }
    if (!patch) {
      if (mark !== 'add') ((line.before = before++), oldLeft--)
      if (mark !== 'remove') ((line.after = after++), newLeft--)
    }
    hunk!.lines.push(line)
  }

  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  for (const line of lines) {
    // Within a hunk the header's counts decide, since "--- x" may be a removed
    // line that was "-- x".
    if (!patch && (oldLeft > 0 || newLeft > 0)) {
      const mark = line[0]
      if (mark === '+' && newLeft > 0) put('add', line.slice(1))
      else if (mark === '-' && oldLeft > 0) put('remove', line.slice(1))
      else if ((mark === ' ' || line === '') && oldLeft > 0 && newLeft > 0) put('same', line.slice(1))
      else if (mark === '\\') lastOf(hunk)
      else {
        oldLeft = newLeft = 0
        note(line)
      }
      continue
    }
    const trimmed = line.trim()
    const section = /^\*\*\* (Begin Patch|End Patch|End of File|(Add|Delete|Update) File: (.+)|Move to: (.+))$/.exec(
      trimmed,
    )
    if (section !== null && (patch || section[1] === 'Begin Patch')) {
      const [, all, verb, path = '', moved] = section
      if (all === 'Begin Patch') patch = true
      else if (all === 'End Patch') patch = false
      else if (verb === 'Add') begin('', path)
      else if (verb === 'Delete') begin(path, '')
      else if (verb === 'Update') begin(path, path)
      else if (moved !== undefined && file !== undefined) file.to = moved
      continue
    }
    if (patch) {
      const mark = line[0]
      if (line.startsWith('@@')) {
        const heading = line.replace(/^@@ ?/, '')
        // several @@ lines are one place, in steps
        if (hunk !== undefined && hunk.lines.length === 0)
          hunk.heading = [hunk.heading, heading].filter(Boolean).join(' › ')
        else open(hunkHeader.test(line) ? '' : heading)
      } else if (file === undefined || file.to === '') {
        if (trimmed !== '') note(line)
      } else if (mark === '+') put('add', line.slice(1))
      else if (mark === '-') put('remove', line.slice(1))
      else if (mark === ' ' || (line === '' && hunk !== undefined)) put('same', line.slice(1))
      else if (trimmed !== '') note(line)
      continue
    }
    const header = hunkHeader.exec(line)
    if (header !== null) {
      before = Number(header[1])
      after = Number(header[3])
      oldLeft = header[2] === undefined ? 1 : Number(header[2])
      newLeft = header[4] === undefined ? 1 : Number(header[4])
      open(header[5] ?? '')
    } else if (line.startsWith('diff --git ')) {
      const names = /^diff --git (?:"?a\/(.*?)"?) (?:"?b\/(.*?)"?)$/.exec(line)
      begin(names?.[1] ?? '', names?.[2] ?? '')
    } else if (line.startsWith('--- ') && !(file?.hunks.length === 0)) begin(path(line), '')
    else if (line.startsWith('--- ')) file!.from = path(line)
    else if (line.startsWith('+++ ') && file !== undefined) file.to = path(line)
    else if (line.startsWith('rename from ') && file !== undefined) file.from = line.slice(12)
    else if (line.startsWith('rename to ') && file !== undefined) file.to = line.slice(10)
    else if (line.startsWith('new file mode') && file !== undefined) ((file.from = ''), note(line))
    else if (line.startsWith('deleted file mode') && file !== undefined) ((file.to = ''), note(line))
    else if (line.startsWith('\\')) lastOf(hunk)
    else if (!line.startsWith('index ') && trimmed !== '') note(line)
  }
  return files
}

function lastOf(hunk: Hunk | undefined): void {
  const last = hunk?.lines.at(-1)
  if (last !== undefined) last.open = true
}

// path takes a name from a --- or +++ line: without a/ or b/, and without the
// time that diff(1) puts after it.
function path(line: string): string {
  let name = line.slice(4).replace(/\t.*$/, '')
  if (name.startsWith('"') && name.endsWith('"')) name = name.slice(1, -1)
  return name === '/dev/null' ? '' : name.replace(/^[ab]\//, '')
}

// sideBySide pairs removed lines with the lines that replace them.
export function sideBySide(lines: Line[]): Row[] {
  const rows: Row[] = []
  let removed: Line[] = []
  let added: Line[] = []
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) rows.push({ left: removed[i], right: added[i] })
    removed = []
    added = []
  }
  for (const line of lines) {
    if (line.mark === 'remove') {
      if (added.length > 0) flush() // a removal after additions begins another change
      removed.push(line)
    } else if (line.mark === 'add') added.push(line)
    else {
      flush()
      rows.push({ left: line, right: line })
    }
  }
  flush()
  return rows
}

export function count(files: FileDiff[]): { added: number; removed: number } {
  const lines = files.flatMap((file) => file.hunks.flatMap((hunk) => hunk.lines))
  return {
    added: lines.filter((line) => line.mark === 'add').length,
    removed: lines.filter((line) => line.mark === 'remove').length,
  }
}

// titleOf describes the change to a file in a few words.
export function titleOf({ from, to }: FileDiff): string {
  if (from === '' && to === '') return 'Changes'
  if (from === '') return `${to} (new)`
  if (to === '') return `${from} (deleted)`
  return from === to ? to : `${from} → ${to}`
}
