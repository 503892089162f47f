import { describe, expect, it } from 'vitest'
import { chunks } from './chunks'
import { highlight } from './highlight'
import { safeTarget } from './links'

describe('chunks', () => {
  const text =
    '# A\n\nOne\ntwo.\n\n- a\n\n- b\n\n  more of b\n\nAfter\n\n```go\nx\n\ny\n```\n\n| a |\n|---|\n| 1 |\n\nEnd'
  it('joined are the text', () => {
    for (let to = 0; to <= text.length; to++) expect(chunks(text.slice(0, to)).join('')).toBe(text.slice(0, to))
  })
  it('do not cut what goes on', () => {
    const list = chunks(text)
    expect(list.find((c) => c.includes('- a'))).toContain('more of b')
    expect(list.find((c) => c.includes('```go'))).toContain('y\n```')
    expect(chunks('[x]\n\ntext\n\n[x]: http://a')).toHaveLength(1)
  })
  it('stay as they are while the text grows', () => {
    const before = chunks(text.slice(0, -20))
    expect(chunks(text).slice(0, before.length - 2)).toEqual(before.slice(0, -2))
  })
})

it('has links only to where links may lead', () => {
  expect(
    [
      'http://a',
      'https://a',
      'mailto:a@b',
      'javascript:x',
      'JAVASCRIPT:x',
      ' javascript:x',
      'file:///x',
      '//a',
      'a',
    ].map((a) => safeTarget(a) !== null),
  ).toEqual([true, true, true, false, false, false, false, false, false])
})

describe('code', () => {
  it('is coloured, and stays what it is', async () => {
    const code = 'func main() { return "x" } // y'
    const pieces = await highlight(code, 'golang')
    const flat = (list: NonNullable<typeof pieces>): string =>
      list.map((p) => (typeof p === 'string' ? p : flat(p.inside))).join('')
    expect(flat(pieces!)).toBe(code)
    expect(JSON.stringify(pieces)).toContain('text-accent')
    expect(await highlight('x', 'constructor')).toBeNull()
  })
})
