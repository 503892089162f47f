import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, describe, expect, it } from 'vitest'
import { Markdown } from './Markdown'
import { proseParts } from '../model/prose'

afterEach(cleanup)

const text =
  '# A\n\nOne\ntwo.\n\n- a\n\n- b\n\n  more of b\n\nAfter\n\n```go\nx\n\ny\n```\n\n| a |\n|---|\n| 1 |\n\nEnd'

it('is drawn in pieces as it is drawn whole', () => {
  const shown = (markdown: string) => {
    const { container } = render(<Markdown text={markdown} />)
    const html = container.querySelector('.markdown')!.innerHTML.replace(/\n+(?=<)/g, '')
    cleanup()
    return html
  }
  expect(shown(text)).toBe(shown(text + '\n\n[z]: http://z')) // this one is not cut
})

describe('what a model wrote', () => {
  it('cannot bring HTML, scripts or pictures along', () => {
    const evil =
      '<img src=x onerror=alert(1)> <script>alert(1)</script> [a](javascript:alert(1)) ' +
      '[b](data:text/html,x) [c](/settings) ![p](https://evil.example/p.png?secret) <a ' +
      'href="https://x">y</a>'
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
    expect(proseParts('👨‍👩‍👧 naïve — “ok” ❤️').filter((part) => part.trick)).toEqual([])
  })
  it('keeps fences apart from code in a line', () => {
    const { container } = render(<Markdown text={'a `b` c\n\n```\none line\n```\n\n    indented\n'} />)
    expect(container.querySelectorAll('pre')).toHaveLength(2)
    expect(container.querySelectorAll('p code')).toHaveLength(1)
  })
})
