// Text may contain characters that are invisible, or that make it look different from its effect. They are shown by
// name.

export type Trick = 'control' | 'ansi' | 'bidi' | 'invisible' | 'space' | 'lookalike' | 'escape'

export interface Part {
  text: string // the original text
  shown: string // the text to show; the same if there is no trick
  trick?: Trick
  name?: string // of the trick, for people
}

// ESC and the characters that a terminal takes with it: a control sequence, a string such as a title or a link, or one
// more character.
const escape =
  '\\u001b(?:\\[[\\u0020-\\u003f]*[\\u0040-\\u007e]?' +
  '|[\\]PX^_][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)?|[\\u0020-\\u002f]*[\\u0030-\\u007e])?'
const control = '[\\u0000-\\u0008\\u000b-\\u001a\\u001c-\\u001f\\u007f-\\u009f]'
const bidi = '[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]'
const invisible =
  '[\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200d\\u2060-\\u2065\\u206a-\\u206f' +
  '\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{e0000}-\\u{e0fff}\\ud800-\\udfff]'
const space = '[\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'
// A Latin word with Greek or Cyrillic letters in it.
const mixed =
  '(?<![\\p{L}\\p{N}])(?=[\\p{L}\\p{N}]*\\p{Script=Latin})' +
  '(?=[\\p{L}\\p{N}]*[\\p{Script=Cyrillic}\\p{Script=Greek}])[\\p{L}\\p{N}]+'
const tricks = new RegExp(
  `(?<ansi>${escape})|(?<control>${control})|(?<bidi>${bidi})` +
    `|(?<invisible>${invisible})|(?<space>${space})|(?<mixed>${mixed})`,
  'gu',
)
const foreign = /[\p{Script=Cyrillic}\p{Script=Greek}]/u

const names: Record<number, string> = {
  0x00: 'null',
  0x08: 'backspace',
  0x0d: 'carriage return',
  0x7f: 'delete',
  0xa0: 'no-break space',
  0xad: 'soft hyphen',
  0x200b: 'zero width space',
  0x200c: 'zero width non-joiner',
  0x200d: 'zero width joiner',
  0x200e: 'left-to-right mark',
  0x200f: 'right-to-left mark',
  0x2028: 'line separator',
  0x2029: 'paragraph separator',
  0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding',
  0x202c: 'end of directional formatting',
  0x202d: 'left-to-right override',
  0x202e: 'right-to-left override',
  0x2060: 'word joiner',
  0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate',
  0x2069: 'end of isolate',
  0xfeff: 'byte order mark',
}

// Text that the server quoted, such as a command, contains escapes of these characters; a literal backslash is written
// twice.
const quoted = /\\\\|(?<escape>\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[abfnrtv]))/g

// visible cuts a text into parts. The joined `text` of the parts is the original text. Newlines and tabs stay. In
// quoted text, escapes are tricks, too.
export function visible(text: string, isQuoted = false): Part[] {
  const parts = tricksOf(text)
  return isQuoted ? parts.flatMap((part) => (part.trick === undefined ? escapes(part.text) : [part])) : parts
}

function escapes(text: string): Part[] {
  const parts: Part[] = []
  let end = 0
  for (const match of text.matchAll(quoted)) {
    if (match.groups!.escape === undefined) continue
    if (match.index > end) parts.push({ text: text.slice(end, match.index), shown: text.slice(end, match.index) })
    end = match.index + match[0].length
    parts.push({ text: match[0], shown: match[0], trick: 'escape', name: 'a character written as an escape' })
  }
  if (end < text.length) parts.push({ text: text.slice(end), shown: text.slice(end) })
  return parts
}

function tricksOf(text: string): Part[] {
  const parts: Part[] = []
  let end = 0
  const plain = (until: number) => {
    if (until > end) parts.push({ text: text.slice(end, until), shown: text.slice(end, until) })
  }
  for (const match of text.matchAll(tricks)) {
    const found = match[0]
    const groups = match.groups!
    plain(match.index)
    end = match.index + found.length
    if (groups.mixed !== undefined) {
      for (const letter of found) parts.push(foreign.test(letter) ? lookalike(letter) : { text: letter, shown: letter })
      continue
    }
    const trick: Trick =
      groups.ansi !== undefined
        ? 'ansi'
        : groups.control !== undefined
          ? 'control'
          : groups.bidi !== undefined
            ? 'bidi'
            : groups.invisible !== undefined
              ? 'invisible'
              : 'space'
    parts.push({ text: found, shown: spell(found, trick), trick, name: nameOf(found, trick) })
  }
  plain(text.length)
  return joined(parts)
}

// tricky lists each kind of trick in a text once.
export function tricky(text: string): Trick[] {
  return [...new Set(visible(text).flatMap((part) => part.trick ?? []))]
}

function lookalike(letter: string): Part {
  return {
    text: letter,
    shown: letter,
    trick: 'lookalike',
    name: `${code(letter)}: ${/\p{Script=Greek}/u.test(letter) ? 'Greek' : 'Cyrillic'}, not Latin`,
  }
}

function spell(found: string, trick: Trick): string {
  if (trick === 'ansi' || trick === 'control') return [...found].map(picture).join('')
  return `⟨${code(found)}⟩`
}

// picture returns the Unicode picture of a control character.
function picture(character: string): string {
  const point = character.codePointAt(0)!
  if (point < 0x20) return String.fromCodePoint(0x2400 + point)
  if (point === 0x7f) return '␡'
  if (point >= 0x80 && point < 0xa0) return `⟨${code(character)}⟩`
  return visibleOne(character)
}

// The content of an escape sequence may contain another trick.
function visibleOne(character: string): string {
  return new RegExp(`${bidi}|${invisible}|${space}`, 'u').test(character) ? `⟨${code(character)}⟩` : character
}

function code(character: string): string {
  return 'U+' + character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
}

function nameOf(found: string, trick: Trick): string {
  if (trick === 'ansi') return 'terminal escape sequence'
  const name = names[found.codePointAt(0)!]
  const kind = {
    control: 'control character',
    bidi: 'changes the direction of text',
    invisible: 'invisible character',
    space: 'looks like a space',
  }[trick as 'control']
  return name === undefined ? `${code(found)}: ${kind}` : `${code(found)} ${name}: ${kind}`
}

// joined joins adjacent plain parts.
function joined(parts: Part[]): Part[] {
  const out: Part[] = []
  for (const part of parts) {
    const last = out.at(-1)
    if (last !== undefined && last.trick === undefined && part.trick === undefined) {
      last.text += part.text
      last.shown += part.shown
    } else out.push({ ...part })
  }
  return out
}
