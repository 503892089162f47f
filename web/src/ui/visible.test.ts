import { describe, expect, it } from 'vitest'
import { tricky, visible } from './visible'

const shown = (text: string) =>
  visible(text)
    .map((part) => (part.trick ? `[${part.trick}:${part.shown}]` : part.shown))
    .join('')

describe('visible', () => {
  const cases: [string, string, string][] = [
    ['plain text', 'go test ./... # naïve Ünïcode 你好', 'go test ./... # naïve Ünïcode 你好'],
    ['newlines and tabs are what they seem', 'a\n\tb', 'a\n\tb'],
    ['a carriage return would hide what is before it', 'rm -rf /\rls     ', 'rm -rf /[control:␍]ls     '],
    ['backspaces', 'lss\b', 'lss[control:␈]'],
    ['colour', '\u001b[31mred\u001b[0m', '[ansi:␛[31m]red[ansi:␛[0m]'],
    ['a title, ended by a bell', '\u001b]0;x\u0007y', '[ansi:␛]0;x␇]y'],
    ['a link, ended by ST', '\u001b]8;;http://x\u001b\\y', '[ansi:␛]8;;http://x␛\\]y'],
    ['an escape at the end', 'a\u001b', 'a[ansi:␛]'],
    ['an unfinished sequence', 'a\u001b[3', 'a[ansi:␛[3]'],
    ['one byte CSI', 'a\u009b31m', 'a[control:⟨U+009B⟩]31m'],
    ['right to left override', 'a\u202etxt.exe', 'a[bidi:⟨U+202E⟩]txt.exe'],
    ['hidden in a title', '\u001b]0;\u202e\u0007', '[ansi:␛]0;⟨U+202E⟩␇]'],
    ['zero width space', 'r\u200bm', 'r[invisible:⟨U+200B⟩]m'],
    ['letters of the tag block', 'hi\u{e0041}', 'hi[invisible:⟨U+E0041⟩]'],
    ['half of a pair', 'a\ud800b', 'a[invisible:⟨U+D800⟩]b'],
    ['a whole pair is no trick', '😀', '😀'],
    ['no-break space', 'rm\u00a0-rf', 'rm[space:⟨U+00A0⟩]-rf'],
    ['Cyrillic а among Latin', 'p\u0430ypal.com', 'p[lookalike:а]ypal.com'],
    ['Greek among Latin', 'g\u03bfogle', 'g[lookalike:ο]ogle'],
    ['a Russian word is none', 'echo привет', 'echo привет'],
  ]
  it.each(cases)('%s', (_, text, want) => expect(shown(text)).toBe(want))

  it('loses no byte', () => {
    const all = cases.map(([, text]) => text).join('|')
    expect(
      visible(all)
        .map((part) => part.text)
        .join(''),
    ).toBe(all)
  })

  it('marks what a quoted text spells out', () => {
    const marked = (text: string) =>
      visible(text, true)
        .map((part) => (part.trick ? `[${part.shown}]` : part.shown))
        .join('')
    expect(marked('bash -lc "a\\u202eb \\n \\\\n \\x1b[0m"')).toBe('bash -lc "a[\\u202e]b [\\n] \\\\n [\\x1b][0m"')
    expect(shown('a\\u202e')).toBe('a\\u202e')
  })

  it('names what it found', () => {
    expect(visible('\u202e')[0]?.name).toBe('U+202E right-to-left override: changes the direction of text')
    expect(tricky('a\u202e\u202eb\u200b')).toEqual(['bidi', 'invisible'])
    expect(tricky('ls')).toEqual([])
  })

  it('is quick with a long text', () => {
    expect(visible('a'.repeat(200_000))).toHaveLength(1)
  })
})
