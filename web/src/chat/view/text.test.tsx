import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, describe, expect, it } from 'vitest'
import { chunks } from '../model/chunks'
import { highlight } from '../model/highlight'
import { safeTarget } from '../model/links'
import { Markdown } from './Markdown'
import { isPlain } from '../model/prose'

afterEach(cleanup)

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
  it('render as the whole does', () => {
    const shown = (markdown: string) => {
      const { container } = render(<Markdown text={markdown} />)
      const html = container.querySelector('.markdown')!.innerHTML.replace(/\n+(?=<)/g, '')
      cleanup()
      return html
    }
    expect(shown(text)).toBe(shown(text + '\n\n[z]: http://z')) // which is not cut
  })
})

describe('what a model wrote', () => {
  it('cannot bring HTML, scripts or pictures along', () => {
    const evil =
      '<img src=x onerror=alert(1)> <script>alert(1)</script> [a](javascript:alert(1)) [b](data:text/html,x) [c](/settings) ![p](https://evil.example/p.png?secret) <a href="https://x">y</a>'
    const { container } = render(<Markdown text={evil} />)
    expect(container.querySelector('img, script, iframe')).toBeNull()
    expect([...container.querySelectorAll('a')].map((a) => a.href)).toEqual(['https://evil.example/p.png?secret'])
    expect(container.textContent).toContain('alert(1)')
  })
  it('says where links lead', () => {
    render(<Markdown text="[your bank](https://evil.example/login) and https://plain.example/x" />)
    const [bank, plain] = screen.getAllByRole('link')
    expect(bank!.textContent).toBe('your bank (evil.example)')
    expect(bank!.getAttribute('rel')).toContain('noopener')
    expect(plain!.textContent).toBe('https://plain.example/x')
  })
  it('shows what turns text round or steers a terminal', () => {
    const { container } = render(<Markdown text={'safe \u202egnp.exe and \u001b[31mred `co\u200bde` 👨‍👩‍👧'} />)
    expect([...container.querySelectorAll('mark')].map((m) => m.dataset.trick)).toEqual(['bidi', 'ansi', 'invisible'])
    expect(isPlain('👨‍👩‍👧 naïve — “ok” ❤️')).toBe(true)
  })
  it('keeps fences apart from code in a line', () => {
    const { container } = render(<Markdown text={'a `b` c\n\n```\none line\n```\n\n    indented\n'} />)
    expect(container.querySelectorAll('pre')).toHaveLength(2)
    expect(container.querySelectorAll('p code')).toHaveLength(1)
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
