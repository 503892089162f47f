import { expect, it } from 'vitest'
import { aboutModel } from './models'

it('says the window and the price of a model, as far as they are known', () => {
  const model = { id: 'm', provider: 'openai', default: false }
  expect(aboutModel({ ...model, context_window: 200_000, input_price: 3, output_price: 15 })).toBe(
    '200k tokens · $3 in, $15 out per million',
  )
  expect(aboutModel({ ...model, context_window: 8000 })).toBe('8k tokens')
  expect(aboutModel(model)).toBe('')
})
