import { expect, it } from 'vitest'
import { modelCalls, saidText } from './calls'
import { pastAt } from './past'
import type { LogEvent } from '../wire/log.generated'

const begin = Date.parse('2026-03-01T09:00:00Z')

// One event per second: its second equals its seq.
function log(...parts: [type: string, body: object, run?: number][]): LogEvent[] {
  return parts.map(([type, body, run = 3], at) => ({
    session: 's',
    root: 's',
    seq: at + 1,
    position: at + 1,
    at: new Date(begin + (at + 1) * 1000).toISOString(),
    run,
    type,
    body,
  })) as LogEvent[]
}

const events = log(
  ['SessionOpened', { title: 'T' }, 0],
  ['InputReceived', { content: 'look' }, 0],
  ['RunStarted', { input: 2, agent: { name: 'coder' } }],
  ['InputAdopted', { input: 2 }],
  ['TurnStarted', { number: 1, model: 'big' }], // 5
  ['ModelFellBack', { turn: 5, actual: 'small' }],
  ['OutputStarted', { turn: 5, kind: 'thinking' }], // 7
  ['OutputAppended', { output: 7, text: 'h' }],
  ['OutputFinished', { output: 7, text: 'hm' }],
  ['OutputStarted', { turn: 5, kind: 'text' }], // 10
  ['OutputAppended', { output: 10, text: 'I will ' }],
  ['OutputFinished', { output: 10, text: 'I will look.' }], // 12
  ['ToolCallRequested', { turn: 5, name: 'shell', arguments: '{"command":["ls"]}' }], // 13
  ['ApprovalRequested', { call: 13 }], // 14
  ['TurnFinished', { turn: 5, stop: 'tools', usage: { input: 10, output: 2, cost_micros: 5 } }], // 15
  ['ContextMeasured', { turn: 5, tokens: 12, limit: 100 }],
  ['ApprovalDecided', { call: 13, decision: 'allow' }], // 17
  ['ToolCallStarted', { call: 13 }],
  ['ToolCallFinished', { call: 13, outcome: 'succeeded', result: 'a.txt' }], // 19
  ['FilesChanged', { files: [{ path: 'a.txt', summary: 'new' }] }],
  ['TurnStarted', { number: 2 }], // 21
  ['RunFinished', { outcome: 'cancelled' }],
  ['TurnStarted', { number: 1 }, 23],
)

it('lists the model calls of a run', () => {
  const [first, second, ...more] = modelCalls(events, 3)
  expect(more).toEqual([])
  expect(first).toMatchObject({ model: 'big', answeredBy: 'small', stop: 'tools', context: { tokens: 12, limit: 100 } })
  expect([first!.first! - first!.start, first!.end! - first!.start]).toEqual([2000, 10_000])
  expect([saidText(first!, 'thinking'), saidText(first!, 'text')]).toEqual(['hm', 'I will look.'])
  expect(first!.asked).toEqual([{ seq: 13, name: 'shell', arguments: '{"command":["ls"]}' }])
  expect(second).toMatchObject({ turn: 21, number: 2, said: [] })
  expect(second!.stop).toBeUndefined()
})

it('shows a session as it was at an event', () => {
  expect(pastAt(events, 2)).toMatchObject({ status: 'idle', queued: [{ text: 'look' }], entries: [] })
  const speaking = pastAt(events, 11)
  expect(speaking).toMatchObject({ seq: 11, status: 'running', turn: 1, queued: [], usage: { cost_micros: 0 } })
  expect(speaking.entries.at(-1)).toMatchObject({ who: 'agent', name: 'coder', text: 'I will ' })
  expect(pastAt(events, 15)).toMatchObject({ status: 'waiting', usage: { input: 10, cost_micros: 5 } })
  expect(pastAt(events, 15).entries.at(-1)).toMatchObject({ who: 'tool', name: 'shell', status: 'waiting' })
  const end = pastAt(events, 99)
  expect(end).toMatchObject({ status: 'idle', files: ['a.txt'] })
  expect(end.entries.map((entry) => entry.text)).toEqual(['look', '', 'I will look.', 'a.txt', 'The run was cancelled.'])
})
