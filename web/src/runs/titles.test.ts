import { expect, it } from 'vitest'
import type { Session } from '../wire/native.generated'
import { titlesOf } from './titles'

function session(id: string, over: Partial<Session> = {}): Session {
  return {
    id,
    root: id,
    owner: 'ann',
    agent: 'coder',
    title: 'title of ' + id,
    status: 'idle',
    transient: false,
    head: 1,
    opened_at: '',
    updated_at: '',
    ...over,
  }
}

it('names conversations of debug consoles by their first message, and no sub-agents', () => {
  const listed = session('a')
  const debug = session('b', { transient: true, title: 'What players match?' })
  const child = session('c', { transient: true, root: 'b' })
  expect([...titlesOf([debug, child, listed], [listed])]).toEqual([
    ['b', 'What players match?'],
    ['a', 'title of a'],
  ])
})
