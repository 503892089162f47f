// Autonomy: follow-ups, deliveries and the mission, each seen and ended in the page.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { Chat } from './lib/chat.mjs'
import { Server, test, until, Visitor } from './lib/index.mjs'
import { atEnd } from './lib/server.mjs'

test('a follow-up and a delivery are listed, and the follow-up is cancelled', async (t) => {
  const hook = createServer((_, response) => response.writeHead(503).end('later'))
  await new Promise((resolve) => hook.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => new Promise((resolve) => hook.close(resolve)))
  const server = await Server.start(t, { env: { AUTONOMY_ENABLED: 'true', PARLEY_WEBHOOK_ALLOW: '127.0.0.1' } })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await chat.say('remind me in 1 hour to water the plants')
  await chat.ended('I will remind you.')
  const [{ id }] = (await server.ask('GET', '/api/v1/sessions')).sessions
  const url = `http://127.0.0.1:${hook.address().port}/hook`
  await server.ask('PUT', `/api/v1/sessions/${id}/webhook`, { body: { url, events: ['run_finished'] } })
  await server.ask('POST', `/api/v1/sessions/${id}/inputs`, { body: { content: 'say hello' } })

  await page.goto('/settings#autonomy')
  const part = (name) => page.getByRole('region', { name, exact: true })
  const delivery = part('Deliveries').getByRole('listitem').filter({ hasText: 'webhook' })
  // The list is of the moment at which the page was loaded.
  const shown = async (...texts) => {
    await page.reload()
    await part('Deliveries').waitFor()
    const counts = await Promise.all(texts.map((text) => text.count()))
    return counts.every((n) => n > 0)
  }
  await until('it is pending and was tried', () =>
    shown(delivery.getByText('pending'), delivery.getByText(/^tried (once|\d+ times)$/)),
  )

  await server.ask('POST', `/api/v1/sessions/${id}/inputs`, { body: { content: 'remind me in 2 hours to rest' } })
  const timer = part('Follow-ups').getByRole('listitem').filter({ hasText: 'rest' })
  await until('the follow-up is pending', () => shown(timer.getByText('pending'), timer.getByText(/^in (1|2) h$/)))
  await timer.getByRole('button', { name: 'Cancel' }).click()
  await timer.getByText('cancelled').waitFor()
  const { timers } = await server.ask('GET', '/api/v1/timers?status=pending')
  assert(!timers.some((one) => one.message?.includes('rest')), 'it is still due')
  await timer.getByRole('link', { name: 'Conversation' }).click()
  await page.waitForURL(`**/chat/${id}`)
})

test('a mission is set, prompts an idle agent, and is ended', async (t) => {
  const server = await Server.start(t, {
    env: { AUTONOMY_ENABLED: 'true', PARLEY_IDLE_PROMPT_INTERVAL: '1s', AUTONOMY_COOLDOWN_MS: '0' },
  })
  await server.ask('POST', '/api/v1/agents/helpful-assistant/override', {
    body: { idle_prompt: 'say Still tidy.', idle_interval_secs: 1 },
  })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/settings#autonomy')
  await page.getByLabel('Goal of the agents').fill('Keep it tidy.')
  await page.getByRole('button', { name: 'Set the mission' }).click()
  await page.getByText('Keep it tidy.', { exact: true }).waitFor()
  const prompted = page.getByRole('list', { name: 'Prompted agents' }).getByRole('listitem')
  await prompted.getByText(/was prompted (once|\d+ times), last now/).waitFor()
  await page.getByRole('button', { name: 'End the mission' }).click()
  await page.getByText('1 earlier mission').click()
  await page.getByText('Keep it tidy.', { exact: true }).waitFor() // the title of the session has these words, too
  await page.getByLabel('Goal of the agents').waitFor()
})

test('without AUTONOMY_ENABLED the page says that no agent is prompted, and names the switch', async (t) => {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/settings#autonomy')
  const note = page.getByRole('note').filter({ hasText: 'No agent is prompted' })
  await note.getByText(/AUTONOMY_ENABLED=true/).waitFor()
  await page.getByLabel('Goal of the agents').fill('Keep it tidy.')
  await page.getByRole('button', { name: 'Set the mission' }).click()
  await page.getByRole('button', { name: 'End the mission' }).waitFor()
  await note.getByText(/AUTONOMY_ENABLED=true/).waitFor()
})
