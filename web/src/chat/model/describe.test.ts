import { describe, expect, it } from 'vitest'
import { describe as describeTool, summarize } from './describe'

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
