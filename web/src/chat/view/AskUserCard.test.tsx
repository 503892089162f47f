import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import type { Card } from '../model/message'
import { AskUserCard } from './AskUserCard'
import { server, session, show, useServer } from './testing'

useServer()

const ls = 'Run in the workspace, for at most 2m0s:\n\nls'

const permission = (show: string, why = ''): Card => ({
  question_id: session + '.7',
  questions: [
    {
      question: `Allow shell?${why === '' ? '' : ` (${why})`}\n\n${show}`,
      header: 'Permission',
      options: [],
      multi_select: false,
    },
  ],
  agent: 'coder',
  session,
})
const decided = () =>
  (server.asked.at(-1)?.body as { answers: { selected: string[]; custom_text: string | null }[] }).answers

describe('AskUserCard', () => {
  it('is allowed with Enter and denied with Backspace, on the card itself', async () => {
    show(<AskUserCard card={permission(ls)} />)
    const card = screen.getByRole('article', { name: 'coder wants to run a command' })
    fireEvent.click(screen.getByRole('button', { name: 'Add a note' }))
    const note = screen.getByLabelText('Note for the agent')
    fireEvent.change(note, { target: { value: 'go on' } })
    fireEvent.keyDown(note, { key: 'Enter' })
    fireEvent.keyDown(note, { key: 'Backspace' })
    expect(server.asked).toEqual([])
    fireEvent.keyDown(card, { key: 'Enter' })
    await waitFor(() => expect(server.asked).toHaveLength(1))
    expect(server.asked[0]).toMatchObject({ path: '/api/ask-user-response', body: { question_id: session + '.7' } })
    expect(decided()).toEqual([{ question_index: 0, selected: ['Allow once'], custom_text: 'go on' }])
    fireEvent.keyDown(card, { key: 'Backspace' }) // it is already answered
    expect(server.asked).toHaveLength(1)
  })

  it('has the safe answer in front where there is danger', async () => {
    show(
      <AskUserCard
        card={permission(ls.replace('ls', 'rm -rf build') + '\nNote that it deletes or overwrites files.')}
      />,
    )
    const card = screen.getByRole('article')
    expect(screen.getByText('It deletes or overwrites files.')).toBeTruthy()
    fireEvent.keyDown(card, { key: 'Enter' })
    expect(server.asked).toEqual([])
    expect(document.activeElement).toBe(screen.getByRole('button', { name: /^Deny( ⌫)?$/ }))
    fireEvent.keyDown(card, { key: 'Backspace' })
    await waitFor(() => expect(server.asked).toHaveLength(1))
    expect(decided()[0]!.selected).toEqual(['Deny'])
  })

  it('has all five answers, and shows the rule for similar calls before it is allowed', async () => {
    const card = permission(ls)
    show(<AskUserCard card={card} />)
    const names = () =>
      screen.getAllByRole('button').flatMap((one) => (one.dataset.answer === undefined ? [] : [one.textContent?.trim()]))
    const five = ['Allow once ↵', 'Always', 'Deny ⌫', 'Deny and stop', 'Explain']
    expect(names()).toEqual(five)
    cleanup()

    const rule = 'mkdir with other arguments, to make folders in the workspace'
    card.questions[0]!.options = [{ label: 'Always allow similar', description: rule, preview: null }]
    show(<AskUserCard card={card} />)
    expect(names()).toEqual(five.toSpliced(2, 0, 'Always similar'))
    expect(screen.getByRole('article').textContent).toContain(rule)
    fireEvent.click(screen.getByRole('button', { name: 'Always similar' }))
    await waitFor(() => expect(server.asked).toHaveLength(1))
    expect(decided()[0]!.selected).toEqual(['Always allow similar'])
  })

  it('stops the run', async () => {
    show(<AskUserCard card={permission(ls)} />)
    fireEvent.click(screen.getByRole('button', { name: 'Deny and stop' }))
    await waitFor(() => expect(decided()[0]!.selected).toEqual(['Deny and stop the run']))
  })

  it('shows every byte, and names those that cannot be seen', () => {
    const { container } = show(<AskUserCard card={permission('echo \u202egnp.sh ' + 'x'.repeat(5000))} />)
    expect(container.querySelector('mark[data-trick=bidi]')).not.toBeNull()
    expect(screen.getByText(/change the direction of text/)).toBeTruthy()
    expect(container.textContent).toContain('x'.repeat(5000))
  })

  it('says when it was answered elsewhere, and offers again what failed', async () => {
    server.answer = () => new Response('{"error":"answered"}', { status: 410 })
    show(<AskUserCard card={permission(ls)} />)
    fireEvent.click(screen.getByRole('button', { name: /Allow once/ }))
    await screen.findByText(/answered elsewhere/)
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
    server.answer = () => new Response('{"error":"busy"}', { status: 503 })
    fireEvent.click(screen.getByRole('button', { name: /^Deny( ⌫)?$/ }))
    fireEvent.click(await screen.findByRole('button', { name: 'Try again' }))
    await waitFor(() => expect(server.asked).toHaveLength(3))
    expect(decided()[0]!.selected).toEqual(['Deny'])
  })

  it('cannot be answered without the permission', () => {
    show(<AskUserCard card={permission(ls)} />, { mayMessage: false })
    expect(screen.queryByRole('button', { name: /Allow once|Deny|Always/ })).toBeNull()
    expect(screen.getByText(/needs agents:message/)).toBeTruthy()
  })

  it('asks all questions of a card', async () => {
    const options = (...labels: string[]) => labels.map((label) => ({ label, description: null, preview: null }))
    const card = {
      ...permission(''),
      questions: [
        {
          question: 'Which database?',
          header: 'Database',
          options: options('SQLite', 'PostgreSQL'),
          multi_select: false,
        },
        { question: 'Which extras?', header: 'Extras', options: options('Search', 'Audit'), multi_select: true },
      ],
    }
    show(<AskUserCard card={card} />)
    const send = screen.getByRole('button', { name: 'Answer all' }) as HTMLButtonElement
    fireEvent.click(screen.getByLabelText('SQLite'))
    fireEvent.click(screen.getByLabelText('PostgreSQL'))
    expect(send.disabled).toBe(true)
    fireEvent.click(screen.getByLabelText('Search'))
    fireEvent.click(screen.getByLabelText('Audit'))
    fireEvent.click(send)
    await waitFor(() => expect(server.asked).toHaveLength(1))
    expect(decided().map((d) => d.selected)).toEqual([['PostgreSQL'], ['Search', 'Audit']])
  })
})
