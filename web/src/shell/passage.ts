import type { Mark } from '../wire/native.generated'

// readable leaves out the signs of Markdown from a passage: backticks, the asterisks of bold text, and the # of headings.
// A passage is a short excerpt, where such a sign is only noise. Marks count characters, not UTF-16 units.
export function readable(text: string, marks: readonly Mark[]): { text: string; marks: Mark[] } {
  const characters = [...text]
  const kept: string[] = []
  const before: number[] = [] // number of kept characters before each one
  const isSpace = (at: number) => at < 0 || at >= characters.length || /\s/.test(characters[at]!)
  for (let at = 0; at < characters.length; at++) {
    const bold = characters[at] === '*' && (characters[at + 1] === '*' || (at > 0 && characters[at - 1] === '*'))
    let end = at
    while (characters[end] === '#') end++
    const heading = end > at && end - at <= 6 && isSpace(at - 1) && isSpace(end)
    if (heading) {
      for (; at < end; at++) before.push(kept.length)
      at--
      continue
    }
    before.push(kept.length)
    if (characters[at] !== '`' && !bold) kept.push(characters[at]!)
  }
  before.push(kept.length)
  return {
    text: kept.join(''),
    marks: marks
      .filter(({ start, end }) => start >= 0 && start < end && end <= characters.length)
      .map(({ start, end }) => ({ start: before[start]!, end: before[end]! }))
      .filter(({ start, end }) => start < end),
  }
}
