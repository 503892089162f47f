import { describe, expect, it } from 'vitest'
import { describe as describeTool, requestOf, summarize } from './describe'

describe('words for people', () => {
  it('say what tools do', () => {
    expect(describeTool({ tool: 'shell', args: { command: ['bash', '-lc', 'go  test ./...'] } })).toEqual({
      verb: 'Run',
      object: 'go test ./...',
    })
    expect(describeTool({ tool: 'shell', args: { command: ['rm', "it's"] } }).object).toBe(`rm 'it'\\''s'`)
    expect(
      describeTool({
        tool: 'apply_patch',
        args: { patch: '*** Begin Patch\n*** Update File: a.go\n*** Add File: b.go\n' },
      }).object,
    ).toBe('a.go, b.go')
    expect(describeTool({ tool: 'x__y', args: 'no json' })).toEqual({ verb: 'x__y', object: '' })
    expect(summarize([1, 2, 3].map((n) => ({ tool: 'read_file', args: { path: `d/${n}.go` } })))).toBe(
      'Read 1.go and 2 more',
    )
  })
})

describe('requestOf', () => {
  it('shows commands as commands, changes as patches, and the rest as JSON', () => {
    expect(requestOf({ tool: 'shell', args: { command: ['sh', '-c', 'ls\nls'] } })).toEqual({
      as: 'command',
      text: 'sh -c ls\nls',
    })
    expect(requestOf({ tool: 'edit_file', args: { path: 'a.go', old_text: 'x\n', new_text: 'y\nz' } }).text).toBe(
      '*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n+z',
    )
    expect(requestOf({ tool: 'write_file', args: { path: 'a', content: 'one' } }).as).toBe('patch')
    expect(requestOf({ tool: 'read_file', args: { path: 'a' } })).toEqual({ as: 'json', text: '{\n  "path": "a"\n}' })
    expect(requestOf({ tool: 'apply_patch', args: { patch: 7 } }).as).toBe('json')
  })
})
