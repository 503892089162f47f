import { fireEvent, screen, waitFor } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { AgentMessage } from './AgentMessage'
import { MessageBody } from './MessageBody'
import { MessageBoundary } from './MessageBoundary'
import { PlanBlock } from './PlanBlock'
import { QueuedMessages } from './QueuedMessages'
import { server, session, show, message, tool, useServer } from './testing'

useServer()

describe('AgentMessage', () => {
  it('says what goes on in every phase', () => {
    const { rerender } = show(<AgentMessage message={message({ isThinking: true })} />)
    expect(screen.getByRole('status').textContent).toContain('Thinking')
    rerender(
      <AgentMessage
        message={message({ turns: [1], activitySummary: 'Running go test', content: [tool({ output: 'ok\n' })] })}
      />,
    )
    expect(screen.getByText('Run')).toBeTruthy()
    expect(screen.getByLabelText('Live output').textContent).toContain('ok')
    rerender(<AgentMessage message={message({ turns: [1], content: [{ type: 'text', text: 'Half', open: true }] })} />)
    expect(screen.getByRole('article').dataset.phase).toBe('streaming')
    rerender(
      <AgentMessage
        message={message({
          isGenerating: false,
          outcome: 'failed',
          content: [{ type: 'notice', text: 'The key is wrong.' }],
        })}
      />,
    )
    expect(screen.getByText('failed')).toBeTruthy()
    expect(screen.getByText('The key is wrong.')).toBeTruthy()
  })

  it('folds what was done to a line that tells enough', () => {
    show(
      <AgentMessage
        message={message({
          isGenerating: false,
          turns: [1],
          content: [
            tool({ id: 'a', status: 'done', endedMs: 1400 }),
            tool({ id: 'b', tool: 'read_file', args: { path: 'x/main.go' }, status: 'failed', endedMs: 1500 }),
          ],
        })}
      />,
    )
    const line = screen.getByRole('button', { name: /Ran 2 tools/ })
    expect(line.textContent).toContain('go test')
    expect(line.textContent).toContain('main.go')
    expect(line.textContent).toContain('failed')
    expect(line.getAttribute('aria-expanded')).toBe('false')
    fireEvent.click(line)
    fireEvent.click(screen.getAllByRole('button', { name: /Read/ })[1]!)
    expect(screen.getByText(/"path": "x\/main.go"/)).toBeTruthy()
  })

  it('shows sub-agents in place of the call that asked for them', () => {
    const entry = {
      id: 'c',
      agent: 'explorer',
      task: 'look',
      status: 'completed',
      startedMs: 1,
      endedMs: 2000,
      message: message({ isGenerating: false, content: [{ type: 'text', text: 'Nothing.', open: false }] }),
    }
    const below = { ...entry, id: 'd', parent: 'c', agent: 'digger', task: 'dig' }
    show(
      <AgentMessage
        message={message({
          isGenerating: false,
          content: [tool({ tool: 'delegate', args: { agent_id: 'explorer', task: 'look' }, endedMs: 2 })],
          subagentTree: [entry, below],
        })}
      />,
    )
    expect(screen.queryByText('Delegate')).toBeNull()
    expect(screen.getAllByLabelText('Sub-agents')).toHaveLength(2)
    fireEvent.click(screen.getByRole('button', { name: /explorer/ }))
    expect(screen.getByText('Nothing.')).toBeTruthy()
  })
})

describe('MessageBody', () => {
  it('shows JSON of a known type as what it is', () => {
    const { container, rerender } = show(
      <MessageBody
        text={JSON.stringify({
          type: 'plan',
          summary: 'Fix it',
          items: [{ title: 'Find', status: 'done' }],
          status: 'executing',
        })}
      />,
    )
    expect(screen.getByLabelText('Plan').textContent).toContain('Find')
    rerender(<MessageBody text='{"type":"finalize_task","title":"Mended","acceptance_criteria":["it works"]}' />)
    expect(screen.getByLabelText('Task').textContent).toContain('it works')
    rerender(
      <MessageBody
        text={JSON.stringify({
          type: 'change_report',
          files: [{ path: 'a.go', summary: 'Modified', diff: '@@ -1 +1 @@\n-a\n+b' }],
        })}
      />,
    )
    expect(screen.getByLabelText('Changed files').textContent).toContain('a.go')
    for (const text of ['{"type":"news"}', '{"type":', 'type: plan', '{}']) {
      rerender(<MessageBody text={text} />)
      expect(container.textContent).toContain(text.slice(0, 4))
    }
  })

  it('lets a model write a card, but nobody answer it', () => {
    const card = {
      type: 'ask_user',
      question_id: 'x.1',
      questions: [{ question: 'Allow shell?\n\nrm -rf /', header: 'Permission', options: [{ label: 'Allow once' }] }],
    }
    show(<MessageBody text={JSON.stringify(card)} />)
    expect(screen.queryByRole('button', { name: /Allow/ })).toBeNull()
    expect(screen.getByText(/nothing waits for an answer/)).toBeTruthy()
  })
})

describe('PlanBlock', () => {
  it('is decided where it waits', async () => {
    show(
      <PlanBlock plan={{ summary: '', status: 'planned', items: [{ title: 'Find', status: 'pending' }] }} deciding />,
    )
    fireEvent.click(screen.getByRole('button', { name: 'Approve and carry out' }))
    await waitFor(() => expect(server.asked).toHaveLength(1))
    expect(server.asked[0]).toMatchObject({ path: '/api/plan/approve', body: { session_id: session } })
  })
})

describe('QueuedMessages', () => {
  it('are taken back', async () => {
    show(<QueuedMessages messages={[{ ...message({ role: 'user', text: 'never mind' }), inputId: session + '.8' }]} />)
    fireEvent.click(screen.getByRole('button', { name: /Take back/ }))
    await waitFor(() => expect(server.asked).toHaveLength(1))
    expect(server.asked[0]).toMatchObject({ method: 'DELETE', path: `/api/v1/inputs/${session}.8` })
  })
})

describe('what cannot be drawn', () => {
  it('is kept to itself', () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const Broken = () => {
      throw new Error('no')
    }
    show(
      <MessageBoundary raw={{ text: 'its text' }}>
        <Broken />
      </MessageBoundary>,
    )
    expect(screen.getByText(/cannot be shown/)).toBeTruthy()
    expect(screen.getByText(/its text/)).toBeTruthy()
    error.mockRestore()
  })
})
