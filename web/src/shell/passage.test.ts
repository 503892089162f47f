import { expect, it } from 'vitest'
import { readable } from './passage'

const marked = (text: string, word: string) => {
  const start = [...text.slice(0, text.indexOf(word))].length
  const shown = readable(text, [{ start, end: start + [...word].length }])
  return [shown.text, shown.marks.map(({ start, end }) => [...shown.text].slice(start, end).join(''))]
}

it('leaves out the signs of Markdown and keeps the marks at their words', () => {
  expect(marked('a `Set` is **a data race**. ```go func (c *Cache) Get', 'Cache')).toEqual([
    'a Set is a data race. go func (c *Cache) Get',
    ['Cache'],
  ])
  expect(marked('… 🙂 `x` then ## The cache', 'cache')).toEqual(['… 🙂 x then  The cache', ['cache']])
  expect(marked('issue #12 and C# stay', '12')).toEqual(['issue #12 and C# stay', ['12']])
})

it('drops marks that are outside of the text or have nothing left', () => {
  expect(readable('``` x', [{ start: 0, end: 3 }])).toEqual({ text: ' x', marks: [] })
  expect(readable('x', [{ start: 0, end: 9 }])).toEqual({ text: 'x', marks: [] })
})
