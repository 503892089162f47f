import { expect, it } from 'vitest'
import { pairs, pairsOf, words } from './serverText'

it('splits a command line into words', () => {
  expect(words('node  "/opt/my tools/a.mjs" --x=\'a b\' c\\ d ""')).toEqual(['node', '/opt/my tools/a.mjs', '--x=a b', 'c d', ''])
  expect(words('  ')).toEqual([])
})

it('reads names and values', () => {
  expect(pairsOf('A=b=c\n\n TOKEN = x \nKEEP', '=')).toEqual({ A: 'b=c', TOKEN: 'x', KEEP: '' })
  expect(pairs({ A: '', B: 'c' }, '=')).toBe('A=\nB=c')
  expect(pairsOf(pairs({ Authorization: 'Bearer a=:b' }, ':'), ':')).toEqual({ Authorization: 'Bearer a=:b' })
})
