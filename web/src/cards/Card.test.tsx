import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Card } from './Card'
import type { Reply } from './content'
import { settleMs } from './steady'

vi.unmock('./steady')

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  cleanup()
  vi.useRealTimers()
})

function open(top: () => number) {
  const replies: Reply[] = []
  vi.spyOn(Element.prototype, 'getBoundingClientRect').mockImplementation(
    () => ({ top: top(), left: 0 }) as unknown as DOMRect,
  )
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Card
        id="1"
        agent="coder"
        content={{ kind: 'approval', tool: 'shell', show: 'ls' }}
        may
        reply={(reply) => void replies.push(reply)}
        explanation={{ ask: () => {} }}
      />
    </QueryClientProvider>,
  )
  const pass = (ms: number) => act(() => void vi.advanceTimersByTime(ms))
  return { replies, pass, allow: screen.getByRole('button', { name: /Allow once/ }), card: screen.getByRole('article') }
}

test('a click that comes right after the card answers nothing', () => {
  const { replies, pass, allow, card } = open(() => 0)
  fireEvent.click(allow, { detail: 1 })
  fireEvent.keyDown(card, { key: 'Enter' })
  fireEvent.keyDown(card, { key: 'Backspace' })
  expect(replies).toEqual([])
  expect(allow.getAttribute('aria-disabled')).toBe('true')
  pass(settleMs + 200)
  expect(allow.getAttribute('aria-disabled')).toBeNull()
  fireEvent.click(allow, { detail: 1 })
  expect(replies).toHaveLength(1)
})

test('a card that moves rests again', () => {
  let top = 0
  const { replies, pass, allow } = open(() => top)
  pass(settleMs + 200)
  top = 140
  pass(200)
  fireEvent.click(allow, { detail: 1 })
  expect(replies).toEqual([])
  pass(settleMs + 200)
  fireEvent.click(allow, { detail: 1 })
  expect(replies).toHaveLength(1)
})
