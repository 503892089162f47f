import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { Composer } from './Composer'
import { writeDraft } from '../model/draft'
import { server, session, show, useServer } from './testing'

useServer()

describe('Composer', () => {
  const area = () => screen.getByRole('textbox') as HTMLTextAreaElement
  const type = (text: string) => fireEvent.change(area(), { target: { value: text } })
  const press = (key: string, over = {}) => fireEvent.keyDown(area(), { key, ...over })

  it('offers models to those who may change agents, and to nobody else', async () => {
    show(<Composer session={session} agent="coder" onSent={() => {}} />)
    await screen.findByRole('button', { name: /Agent: coder/ })
    expect(screen.queryByRole('button', { name: /Model/ })).toBeNull()
    cleanup()
    server.may = ['agents:write']
    writeDraft(session, { text: 'hello', model: 'gpt-5-mini' })
    show(<Composer session={session} agent="coder" onSent={() => {}} />)
    await screen.findByRole('button', { name: 'Model: gpt-5-mini. Choose another' })
    expect(server.asked, 'vendors are asked though nobody looks').toEqual([])
    press('Enter')
    await waitFor(() => expect(server.asked[0]).toMatchObject({ body: { message: 'hello', model: 'gpt-5-mini' } }))
  })

  it('takes the focus when the conversation has loaded, but not from an open menu', () => {
    vi.stubGlobal('matchMedia', () => ({ matches: true }))
    const view = (loaded: boolean) => (
      <>
        <div role="menu" tabIndex={-1} />
        <Composer session={session} agent="coder" focus={loaded} onSent={() => {}} />
      </>
    )
    const { rerender } = show(view(false))
    screen.getByRole('menu').focus()
    rerender(view(true))
    expect(document.activeElement).toBe(screen.getByRole('menu'))
    screen.getByRole('menu').blur()
    rerender(view(false))
    rerender(view(true))
    expect(document.activeElement).toBe(area())
  })

  it('keeps what was typed until the server has it, and sends it once', async () => {
    server.answer = () => new Response('{"error":"The disk is full."}', { status: 503 })
    const sent = vi.fn()
    show(<Composer session={session} agent="coder" onSent={sent} />)
    type('hello')
    press('Enter', { shiftKey: true })
    expect(server.asked).toEqual([])
    press('Enter')
    await screen.findByText('The disk is full.')
    expect(area().value).toBe('hello')
    server.answer = () => new Response('{"status":"started","session_id":"s"}')
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }))
    await waitFor(() => expect(sent).toHaveBeenCalledOnce())
    expect(server.asked[1]).toMatchObject({
      path: '/api/chat',
      body: { message: 'hello', session_id: session, agent_id: 'coder' },
    })
    expect(server.asked[1]!.once).toBe(server.asked[0]!.once)
    expect(area().value).toBe('')
    type('hello')
    press('Enter')
    await waitFor(() => expect(server.asked).toHaveLength(3))
    expect(server.asked[2]!.once).not.toBe(server.asked[1]!.once) // sent again on purpose
  })

  it('answers the question that waits', async () => {
    const question = {
      question_id: session + '.7',
      questions: [{ question: 'Which colour?', header: 'Colour', options: [], multi_select: false }],
      agent: 'coder',
      session,
    }
    const sent = vi.fn()
    show(<Composer session={session} agent="coder" running question={question} onSent={sent} />)
    type('blue')
    fireEvent.click(screen.getByRole('button', { name: 'Answer' }))
    await waitFor(() => expect(area().value).toBe(''))
    expect(server.asked).toMatchObject([
      {
        path: '/api/ask-user-response',
        body: { question_id: session + '.7', answers: [{ question_index: 0, selected: [], custom_text: 'blue' }] },
      },
    ])
    expect(sent).not.toHaveBeenCalled()
    cleanup()
    const two = { ...question, questions: [question.questions[0]!, question.questions[0]!] }
    show(<Composer session={session} agent="coder" running question={two} onSent={sent} />)
    expect(screen.getByText(/Several questions wait/)).toBeTruthy()
    expect(screen.queryByRole('button', { name: 'Answer' })).toBeNull()
  })

  it('gives up the focus on Escape, so that single keys are shortcuts again', () => {
    show(<Composer session={session} onSent={() => {}} />)
    area().focus()
    press('Escape')
    expect(document.activeElement).not.toBe(area())
  })

  it('keeps drafts over a reload, each session its own', () => {
    writeDraft('other', { text: 'not this' })
    show(<Composer session={session} onSent={() => {}} />)
    type('half a')
    cleanup()
    show(<Composer session={session} onSent={() => {}} />)
    expect(area().value).toBe('half a')
  })

  it('goes back in what was said', () => {
    show(<Composer session={session} said={['one', 'two']} onSent={() => {}} />)
    press('ArrowUp')
    expect(area().value).toBe('two')
    press('ArrowUp')
    expect(area().value).toBe('one')
    press('ArrowDown')
    press('ArrowDown')
    expect(area().value).toBe('')
    type('mine')
    press('ArrowUp')
    expect(area().value).toBe('mine')
  })

  it('suggests commands, skills and agents', async () => {
    show(<Composer session={session} onSent={() => {}} onClear={() => {}} />)
    await screen.findByRole('button', { name: /Agent: coder/ })
    type('/re')
    expect((await screen.findAllByRole('option')).map((o) => o.textContent)).toEqual(['/reviewreviews'])
    press('Tab')
    expect(area().value).toBe('/review ')
    type('@')
    expect(screen.getAllByRole('option')).toHaveLength(2)
    press('ArrowDown')
    press('Enter')
    expect(area().value).toBe('@explorer ')
    expect(server.asked.map((request) => request.method)).toEqual(['GET']) // the files of the project, and no message
  })

  it('offers to stop while a run goes, and to steer once something is typed', () => {
    show(<Composer session={session} running onStop={() => Promise.resolve()} onSent={() => {}} />)
    expect(screen.getByRole('button', { name: /Stop/ })).toBeTruthy()
    expect(screen.queryByRole('button', { name: /Send|Steer/ })).toBeNull()
    type('also this')
    expect(screen.getByRole('button', { name: /Steer/ })).toBeTruthy()
  })
})
