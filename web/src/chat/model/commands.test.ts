import { expect, it } from 'vitest'
import { commands, meaning, mentioned, suggest, suggestFiles } from './commands'

it('knows what is meant', () => {
  expect(meaning(' /plan  fix it ')).toEqual({ do: 'say', message: 'fix it', mode: 'plan' })
  expect(meaning('/clear')).toEqual({ do: 'clear' })
  expect(meaning('/tour')).toEqual({ do: 'say', message: '/tour' })
  expect(suggest('say /', [], [])).toEqual([])
  expect(
    commands([{ name: 'plan', description: '', user_invocable: true, model_invocable: false }]).filter(
      (c) => c.name === '/plan',
    ),
  ).toHaveLength(1)
})

it('completes files of the project where they are mentioned', () => {
  const entries = [
    { name: 'src', isDir: true, path: 'src' },
    { name: 'Setup.md', isDir: false, path: 'Setup.md' },
    { name: 'a b', isDir: false, path: 'a b' },
  ]
  const at = mentioned('Read @s')!
  expect(at).toEqual({ before: 'Read ', folder: '', prefix: 's' })
  expect(suggestFiles(at, entries).map((s) => s.insert)).toEqual(['Read @src/', 'Read @Setup.md '])
  expect(mentioned('@src/lib/ma')).toEqual({ before: '', folder: 'src/lib', prefix: 'ma' })
  for (const text of ['me@example.com', 'Read @src/main.go and', 'no file']) expect(mentioned(text)).toBeUndefined()
})
