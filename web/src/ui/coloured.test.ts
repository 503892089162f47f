import { expect, it } from 'vitest'
import { linesOf } from './Coloured'

it('a piece over several lines is coloured in each of them', () => {
  const comment = { look: 'c', inside: ['/* a\n\nb */', { look: 'd', inside: ['x\n'] }] }
  expect(linesOf(['one\ntwo ', comment, ' end'])).toEqual([
    ['one'],
    ['two ', { look: 'c', inside: ['/* a'] }],
    [],
    [{ look: 'c', inside: ['b */', { look: 'd', inside: ['x'] }] }],
    [' end'],
  ])
})
