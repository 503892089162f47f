import { expect, it } from 'vitest'
import { answersTo, contentOf } from './approval'

const asked = (header: string, question: string) => ({
  questions: [{ header, question, options: [], multi_select: false }],
})

it('takes an approval apart without losing anything', () => {
  const why = 'a message was flagged'
  expect(contentOf(asked('Permission', `Allow shell? (${why})\n\na\n\nb`))).toEqual({
    kind: 'approval',
    tool: 'shell',
    why,
    show: 'a\n\nb',
  })
  expect(contentOf(asked('Permission', 'Allow shell?\n\nls'))).toMatchObject({ tool: 'shell', show: 'ls' })
})

it('knows calls of unknown outcome, and questions', () => {
  expect(contentOf(asked('Unknown', 'shell: sleep 600'))).toEqual({
    kind: 'call',
    tool: 'shell',
    text: 'shell: sleep 600',
  })
  expect(contentOf(asked('Colour', 'Which?')).kind).toBe('question')
})

it('answers with the words of the bus', () => {
  expect(answersTo({ kind: 'approval', decision: 'always', note: 'ok' })).toEqual([
    { selected: ['Always allow exactly this'], custom_text: 'ok' },
  ])
  expect(answersTo({ kind: 'approval', decision: 'always', scope: 'similar' })[0]!.selected).toEqual([
    'Always allow similar',
  ])
  expect(answersTo({ kind: 'call', resolution: 'abandon' })[0]!.selected).toEqual(['Stop the run'])
})
