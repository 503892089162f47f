import { expect, it } from 'vitest'
import { choose, maxBytes } from './images'

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
