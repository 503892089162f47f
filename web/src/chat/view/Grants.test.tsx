import { fireEvent, screen, waitFor } from '@testing-library/react'
import { expect, it } from 'vitest'
import { Grants } from './Grants'
import { server, session, show, useServer } from './testing'

useServer()

const grant = { id: '9', scope: 'similar', tool: 'shell', text: 'mkdir with other arguments', by: 'ann', at: '' }

it('lists what is allowed, and revokes it', async () => {
  let grants = [grant]
  server.answer = ({ path, method }) => {
    if (method === 'DELETE') grants = []
    return new Response(JSON.stringify(path.endsWith('/grants') ? { grants } : {}))
  }
  show(<Grants />)
  expect(await screen.findByText('mkdir with other arguments')).toBeTruthy()
  fireEvent.click(screen.getByRole('button', { name: 'Revoke: mkdir with other arguments' }))
  await screen.findByText('Nothing is allowed without asking.')
  await waitFor(() =>
    expect(server.asked.map(({ method, path }) => [method, path])).toContainEqual([
      'DELETE',
      `/api/v1/sessions/${session}/grants/9`,
    ]),
  )
})

it('cannot be revoked without the permission', async () => {
  server.answer = () => new Response(JSON.stringify({ grants: [grant] }))
  show(<Grants />, { mayMessage: false })
  expect(await screen.findByRole('button', { name: /Revoke/ })).toHaveProperty('disabled', true)
})
