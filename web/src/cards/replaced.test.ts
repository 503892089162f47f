import { expect, test } from 'vitest'
import { wordsOf } from './replaced'
import { writtenFile } from './show'

test('the file that is written is found in the text', () => {
  expect(writtenFile('Write 9 bytes to "notes/a b.txt", replacing it if it exists:\n\nReplaced')).toBe('notes/a b.txt')
  expect(writtenFile('Write 9 bytes to "a\\"b", replacing it if it exists:\n\nx')).toBe('a"b')
  // Go's spelling, not JSON's
  expect(writtenFile('Write 9 bytes to "a\\x00b", replacing it if it exists:\n\nx')).toBeUndefined()
  expect(writtenFile('Run in the workspace:\n\nWrite 9 bytes to "x", replacing it if it exists:')).toBeUndefined()
})

test('what is lost is said', () => {
  expect(wordsOf({ path: 'README.md', lines: 170 })).toBe('It replaces all of README.md, which has 170 lines now.')
  expect(wordsOf({ path: 'x', lines: 1 })).toBe('It replaces all of x, which has one line now.')
  expect(wordsOf({ path: 'x' })).toBe('It replaces x, if that exists.')
})
