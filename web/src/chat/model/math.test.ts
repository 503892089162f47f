import { expect, it } from 'vitest'
import { formulaOf, withMath } from './math'

// shown writes the output of withMath in readable form: M(…) for inline math, D(…) for math on its own line.
function shown(text: string): string {
  return withMath(text).replace(/(`+)([\ue0f0\ue0f1][^`]*)\1/g, (_, __, inside: string) => {
    const { tex, display } = formulaOf(inside)!
    return `${display ? 'D' : 'M'}(${tex})`
  })
}

it.each([
  [String.raw`Euler: \(e^{i\pi}+1 = 0\).`, String.raw`Euler: M(e^{i\pi}+1 = 0).`],
  ['\\[\n\\int_0^1 x\\,dx\n\\]', String.raw`D(\int_0^1 x\,dx)`],
  ['so $a_1 + b$ and $x$.', 'so M(a_1 + b) and M(x).'],
  ['$$\na\n$$', 'D(a)'],
])('%j has math', (text, want) => expect(shown(text)).toBe(want))

it.each([
  'It costs $5 and then $10.',
  'From $5 to $6, or US$7.',
  'echo $HOME/$USER',
  'In code: `$x$` and `\\(y\\)`.',
  '```sh\necho $a$ \\(b\\)\n```\n',
  '```sh\necho $a$ and it goes on',
  '$$\n\nnot closed in this paragraph\n\n$$',
  'plain',
])('%j has none', (text) => expect(withMath(text)).toBe(text))

it('a formula keeps its backslashes and its backticks', () => {
  expect(shown('\\(a\\,b\\)')).toBe('M(a\\,b)')
  const made = withMath('\\(\\text{`a`}\\)')
  expect(made.startsWith('``')).toBe(true)
  expect(formulaOf('code')).toBeUndefined()
})
