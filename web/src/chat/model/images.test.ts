import { expect, it } from 'vitest'
import { choose, documentIn, maxBytes, urlOf } from './images'

it('takes images the server takes', async () => {
  const file = (name: string, type: string, size = 10) => new File([new Uint8Array(size)], name, { type })
  const { pictures, problems } = await choose(
    [],
    [
      file('a.png', 'image/png'),
      file('b.txt', 'text/plain'),
      file('c.jpg', 'image/jpeg', maxBytes),
      ...['d', 'e', 'f', 'g'].map((n) => file(n + '.webp', 'image/webp')),
    ],
  )
  expect(pictures.map((p) => p.name)).toEqual(['a.png', 'd.webp', 'e.webp', 'f.webp'])
  expect(problems).toHaveLength(3)
  expect(pictures[0]!.url).toMatch(/^data:image\/png;base64,/)
})

it('keeps the name of a document in its URL', async () => {
  const { pictures } = await choose([], [new File(['%PDF-'], 'a b;c,d.pdf', { type: 'application/pdf' })])
  expect(pictures[0]!.url).toBe('data:application/pdf;name=a%20b%3Bc%2Cd.pdf;base64,JVBERi0=')
  expect(documentIn(pictures[0]!.url)).toBe('a b;c,d.pdf')
  expect(documentIn('data:image/png;name=a.pdf;base64,AA==')).toBeUndefined()
  expect(urlOf({ type: 'text/html', data: 'AA==' })).toBe('')
})
