import { expect, it } from 'vitest'
import { aboutOf } from './audited'
import { choices } from './Mission'
import { changes } from './SettingsForm'

const was = { model: 'demo', approval: 'suggest', turns: 50, compact_at: 0.8, max_delegation_depth: 2 }
const draft = { model: 'demo', approval: 'suggest', turns: '50', compact: '80', depth: '2' }

it('sends what differs, and nothing else', () => {
  expect(changes(was, draft)).toEqual({})
  expect(changes(was, { ...draft, turns: '7', compact: '29' })).toEqual({ turns: 7, compact_at: 0.29 })
  expect(changes(was, { ...draft, depth: '0', approval: 'full-auto' })).toEqual({
    max_delegation_depth: 0,
    approval: 'full-auto',
  })
})

it('takes a model back with null', () => {
  expect(changes(was, { ...draft, model: ' ' })).toEqual({ model: null })
  expect(changes({ ...was, model: undefined }, { ...draft, model: '' })).toEqual({})
})

it('sends what a mission chooses for agents', () => {
  expect(
    choices({
      coder: { prompt: ' Test. ', minutes: '2' },
      scout: { prompt: '', minutes: '' },
      other: { prompt: '', minutes: '0.5' },
    }),
  ).toEqual([
    { id: 'coder', idle_prompt: 'Test.', idle_interval_secs: 120 },
    { id: 'scout', idle_prompt: null, idle_interval_secs: null },
    { id: 'other', idle_prompt: null, idle_interval_secs: 30 },
  ])
})

it('names the tool and the decision of an audit record', () => {
  expect(aboutOf({ tool_name: 'shell' })).toBe('shell')
  expect(aboutOf({ decision: 'always', call: 'x.1' })).toBe('always allowed')
  expect(aboutOf({ resolution: 'rerun' })).toBe('run again')
  expect(aboutOf({ reason: 'pattern:ignore_instructions', score: 1 })).toBe('')
  expect(aboutOf(undefined)).toBe('')
})
