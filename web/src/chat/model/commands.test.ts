import { expect, it } from 'vitest'
import { commands, meaning, suggest } from './commands'

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
