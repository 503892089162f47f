import { describe, expect, it } from 'vitest'
import { count, parseDiff, titleOf } from '../ui/unified'
import { allowedText, editHeading, editOf, readShow, risky } from './show'

// The texts are those that tool/shell_test.go requires of the server.
describe('a command', () => {
  it('is taken apart', () => {
    const show =
      'Run in the workspace, in "sub", for at most 2m0s:\n\n' +
      'bash -lc "ls && curl -o /etc/x http://y"\n\nThese commands are in it:\n  ls\n' +
      '  curl -o /etc/x http://y\n\n' +
      'This asks because curl is not known only to read.\nNote that it uses the network, leads out of the workspace.'
    expect(readShow('shell', show)).toEqual({
      heading: 'Run in the workspace, in "sub", for at most 2m0s:',
      command: 'bash -lc "ls && curl -o /etc/x http://y"',
      parts: ['ls', 'curl -o /etc/x http://y'],
      because: 'curl is not known only to read',
      risks: ['uses the network', 'leads out of the workspace'],
    })
  })

  it('may be alone, and without reasons', () => {
    expect(readShow('shell', 'Run in the workspace, for at most 2m0s:\n\nmake')).toEqual({
      heading: 'Run in the workspace, for at most 2m0s:',
      command: 'make',
      parts: [],
      because: undefined,
      risks: [],
    })
    expect(
      readShow(
        'shell',
        'Run in the workspace, for at most 2m0s:\n\nmake\nNote that it runs a program that cannot be judged.',
      )?.risks,
    ).toEqual(['runs a program that cannot be judged'])
  })

  it.each([
    ['another tool', 'send', 'Run in the workspace, for at most 2m0s:\n\nmake'],
    ['something behind it', 'shell', 'Run in the workspace, for at most 2m0s:\n\nmake\nrm -rf /'],
    ['something before it', 'shell', '\nRun in the workspace, for at most 2m0s:\n\nmake'],
    [
      'a list that is none',
      'shell',
      'Run in the workspace, for at most 2m0s:\n\nmake\n\nThese commands are in it:\n make',
    ],
    ['other words', 'shell', 'rm old.log'],
  ])('is shown as it came with %s', (_, tool, show) => expect(readShow(tool, show)).toBeUndefined())
})

it.each([
  ['a command nothing is noted about', false, 'shell', 'Run in the workspace, for at most 2m0s:\n\nmytool', '{}'],
  [
    'a command with a note',
    true,
    'shell',
    'Run in the workspace, for at most 2m0s:\n\nrm x\nNote that it deletes or overwrites files.',
    '{}',
  ],
  ['a command that is not told in parts', true, 'shell', 'rm x', '{}'],
  ['a tool of somebody else', true, 'files__write', 'Call the tool', '{}'],
  ['a file that may be there', true, 'write_file', 'Write', '{"path":"a","content":"b"}'],
  ['a file with a trick in it', true, 'write_file', 'Write', '{"path":"a","content":"b\u202e"}'],
  ['a patch', false, 'apply_patch', '*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch', '{}'],
  [
    'a patch that deletes',
    true,
    'apply_patch',
    '*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Delete File: b\n*** End Patch',
    '{}',
  ],
])('%s: risky is %s', (_, want, tool, show, args) => {
  expect(risky(tool, show, args)).toBe(want)
  expect(risky(tool, show, args, 'what it read was flagged')).toBe(true)
})

describe('an edit', () => {
  const edit = (before: string, after: string) => `Edit "a.go", where it stands:\n\n${before}${after}`
  it('is a diff', () => {
    const patch = editOf('edit_file', edit('-x\n-*** End Patch\n-\n', '+y\n+\n'))!
    const [file] = parseDiff(patch)
    expect([titleOf(file!), count([file!])]).toEqual(['a.go', { added: 1, removed: 2 }])
    expect(parseDiff(patch)).toHaveLength(1)
    expect(risky('edit_file', edit('-x\n', '+y\n'))).toBe(false)
  })

  it('of a whole file is all of its new content', () => {
    const show = 'Write 9 bytes to "a.txt", replacing it if it exists:\n\none\n\n+two\n*** Delete File: b'
    const files = parseDiff(editOf('write_file', show)!)
    expect(files[0]!.hunks[0]!.lines.map((line) => line.text)).toEqual(['one', '', '+two', '*** Delete File: b'])
    expect(files).toHaveLength(1)
  })

  it('whose text is not as the server writes it is none', () => {
    expect(editOf('edit_file', 'Edit "a.go":\n\nx')).toBeUndefined()
    expect(editOf('edit_file', edit('-x\n', 'y\n'))).toBeUndefined()
    expect(editOf('edit_file', edit('-x\n', '+y\nmore'))).toBeUndefined()
    const name = 'a\\n*** Delete File: b'
    expect(editOf('write_file', `Write 1 bytes to "${name}", replacing it if it exists:\n\n`)).toBeUndefined()
    expect(editOf('shell', 'x')).toBeUndefined()
  })

  it('of a file whose name deceives is a risk', () => {
    expect(risky('edit_file', 'Edit "a\\u202etxt", where it stands:\n\n-x\n+y\n')).toBe(true)
  })
})

it('a file that is not there is no risk', () => {
  expect(risky('write_file', 'Write', '{"path":"a","content":"b"}', undefined, false)).toBe(false)
  expect(risky('write_file', 'Write', '{"path":"a","content":"b\u202e"}', undefined, false)).toBe(true)
})

it('names an allowed command by the command, unless it runs in another folder', () => {
  const at = (folder: string) => `Run in the workspace${folder}, for at most 2m0s:\n\nmake`
  expect(allowedText('shell', at(''))).toBe('make')
  expect(allowedText('shell', at(', in "sub"'))).toBe(at(', in "sub"'))
  expect(allowedText('send', at(''))).toBe(at(''))
})

it('says where an edit replaces text', () => {
  const show = (where: string) => `Edit "a.go", ${where}:\n\n-x\n+y\n`
  expect(editHeading(show('in the one place where this stands'))).toBe('Replaces the only occurrence of this text:')
  expect(editHeading(show('wherever this stands'))).toBe('Replaces every occurrence of this text:')
  expect(editHeading(show('somewhere'))).toBe('Edit "a.go", somewhere:')
})
