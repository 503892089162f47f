import { describe, expect, it } from 'vitest'
import type { LogEvent } from '../wire/log.generated'
import { money, tokens, usageOf, waterfall } from './waterfall'

let seq = 0
const begin = Date.parse('2026-03-01T09:00:00Z')

// One event per second: its second equals its seq.
function event(type: string, body: Record<string, unknown> = {}, run = 3): LogEvent {
  seq++
  return {
    session: 's',
    root: 's',
    seq,
    position: seq,
    at: new Date(begin + seq * 1000).toISOString(),
    run,
    type,
    body,
  } as LogEvent
}

function log(...make: (() => LogEvent)[]): LogEvent[] {
  seq = 0
  return make.map((one) => one())
}

const bars = (events: LogEvent[]) =>
  waterfall(events, 3).bars.map((bar) => [
    bar.name,
    bar.depth,
    bar.status,
    bar.start - begin,
    bar.end === undefined ? undefined : bar.end - begin,
    bar.spans.map(
      (span) =>
        `${span.kind} ${(span.start - begin) / 1000}-${span.end === undefined ? '' : (span.end - begin) / 1000}`,
    ),
  ])

const opening = [
  () => event('SessionOpened', {}, 0),
  () => event('InputReceived', {}, 0),
  () => event('RunStarted', {}, 0),
]

describe('a run over time', () => {
  it('has turns, calls that waited and ran, and an end', () => {
    const events = log(
      ...opening,
      () => event('TurnStarted', { number: 1 }), // 4
      () => event('ToolCallRequested', { turn: 4, name: 'shell' }), // 5
      () => event('ApprovalRequested', { call: 5 }), // 6
      () => event('TurnFinished', { turn: 4, stop: 'tools', usage: { input: 1200, output: 34 } }), // 7
      () => event('ApprovalDecided', { call: 5, card: 6, decision: 'allow' }), // 8
      () => event('ToolCallStarted', { call: 5 }), // 9
      () => event('ToolOutputAppended', { call: 5, text: 'x' }), // 10
      () => event('ToolCallFinished', { call: 5, outcome: 'failed', result: 'exit code 1\nmore' }), // 11
      () => event('TurnStarted', { number: 2 }), // 12
      () => event('RunFinished', { outcome: 'cancelled' }), // 13
      () => event('TurnStarted', { number: 1 }, 14),
    )
    expect(bars(events)).toEqual([
      ['Turn 1', 0, 'done', 4000, 7000, ['ran 4-7']],
      ['shell', 1, 'failed', 5000, 11000, ['waited 6-8', 'ran 9-11']],
      ['Turn 2', 0, 'cancelled', 12000, 13000, ['ran 12-13']],
    ])
    const { start, end, bars: all } = waterfall(events, 3)
    expect([start - begin, end - begin]).toEqual([3000, 13000])
    expect(all[0]!.usage).toEqual({ input: 1200, output: 34 })
    expect(usageOf(waterfall(events, 3))).toMatchObject({ input: 1200, output: 34, cost_micros: 0 })
    expect([all[1]!.note, all[1]!.events.length]).toEqual(['exit code 1', 6])
  })

  it('shows what goes on', () => {
    const events = log(
      ...opening,
      () => event('TurnStarted', { number: 1 }), // 4
      () => event('ToolCallRequested', { name: 'ask_user' }), // 5
      () => event('ToolCallRequested', { name: 'delegate' }), // 6
      () => event('ToolCallRequested', { name: 'rm' }), // 7
      () => event('TurnFinished', { turn: 4, stop: 'tools' }), // 8
      () => event('QuestionAsked', { call: 5 }), // 9
      () => event('ChildSpawned', { call: 6, child: 'c' }), // 10
      () => event('ToolCallBlocked', { call: 7, reason: 'no' }), // 11
      () => event('ToolCallFinished', { call: 99, outcome: 'succeeded' }), // of an unknown call
      () => event('SomethingNew', { call: 5 }),
    )
    expect(bars(events)).toEqual([
      ['Turn 1', 0, 'done', 4000, 8000, ['ran 4-8']],
      ['ask_user', 1, 'waiting', 5000, undefined, ['waited 9-']],
      ['delegate', 1, 'running', 6000, undefined, ['ran 10-']],
      ['rm', 1, 'blocked', 7000, 11000, []],
    ])
    expect(waterfall(events, 3).bars[2]!.child).toBe('c')
  })

  it('waits for who knows what became of a call', () => {
    const lost = [
      ...opening,
      () => event('ToolCallRequested', { name: 'send' }), // 4
      () => event('ToolCallStarted', { call: 4 }), // 5
      () => event('ToolCallFinished', { call: 4, outcome: 'unknown' }), // 6
    ]
    expect(bars(log(...lost))).toEqual([['send', 1, 'waiting', 4000, undefined, ['ran 5-6', 'waited 6-']]])
    expect(bars(log(...lost, () => event('ToolCallResolved', { call: 4, resolution: 'mark_done' })))).toEqual([
      ['send', 1, 'done', 4000, 7000, ['ran 5-6', 'waited 6-7']],
    ])
  })

  it('may be empty', () => expect(waterfall([], 3)).toEqual({ start: 0, end: 0, bars: [], events: [] }))
})

it('says what it cost', () => {
  expect([money(undefined), money({ cost_micros: 1234 }), money({ cost_micros: 41_000 })]).toEqual([
    undefined,
    '$0.0012',
    '$0.04',
  ])
  expect([tokens({}), tokens({ input: 12_345, output: 678 }), tokens({ input: 1_500_000 })]).toEqual([
    undefined,
    '12.3k in, 678 out',
    '1.5M in, 0 out',
  ])
})
