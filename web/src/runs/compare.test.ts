import { expect, it } from 'vitest'
import { align, type Step } from './compare'

const steps = (...words: string[]): Step[] =>
  words.map((word, seq) => ({ seq, name: word.split(' ')[0]!, detail: word }))

it('puts steps of the same name side by side', () => {
  const left = steps('Message', 'read a', 'shell ls', 'Answer yes')
  const right = steps('Message', 'shell ls', 'edit b', 'Answer no')
  expect(align(left, right).map((pair) => [pair.left?.detail, pair.right?.detail, pair.same])).toEqual([
    ['Message', 'Message', true],
    ['read a', undefined, false],
    ['shell ls', 'shell ls', true],
    [undefined, 'edit b', false],
    ['Answer yes', 'Answer no', false],
  ])
  expect(align([], [])).toEqual([])
  expect(align(left, []).every((pair) => pair.right === undefined)).toBe(true)
})
