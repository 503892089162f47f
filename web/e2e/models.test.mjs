// An API key, entered and tested on the page: the next run uses it, it is never shown, and it stays after a restart.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { violations } from './lib/axe.mjs'
import { Chat } from './lib/chat.mjs'
import { jwt, Model, Server, test, token, until, Visitor, whileAway } from './lib/index.mjs'

const key = 'sk-entered-in-the-page-wxyz'

test('a newcomer enters a key, tests it and uses a real model without a restart', async (t) => {
  const model = await Model.start(t)
  model.script('who are you', 'A real model.')
  model.script('again', 'Still a real model.')
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server, { tolerate: [whileAway] })
  const page = await visitor.tab('/')
  await page.getByText('I use the demo model').waitFor()
  await page.getByRole('link', { name: 'enter an API key' }).click()
  const vendor = page.getByRole('region', { name: /^OpenAI/ })
  await vendor.getByText('No key').waitFor()
  assert.deepEqual(await violations(page), [])

  // A failed test says what is wrong, and stores nothing.
  await vendor.getByLabel('API key').fill(key)
  await vendor.getByLabel('Base URL').fill('http://127.0.0.1:1/v1')
  await vendor.getByRole('button', { name: 'Test' }).click()
  await vendor.getByText(/cannot be reached at http:\/\/127\.0\.0\.1:1/).waitFor()
  await vendor.getByLabel('Base URL').fill(model.url + '/v1')
  await vendor.getByRole('button', { name: 'Test' }).click()
  await vendor.getByText(/^\d+ models: /).waitFor()
  await vendor.getByText('No key').waitFor()
  await vendor.getByRole('button', { name: 'Save' }).click()
  await vendor.getByText('Key entered here, it ends in wxyz').waitFor()
  assert.equal(await vendor.getByLabel('API key').inputValue(), '')

  const chat = new Chat(await visitor.tab('/'))
  await chat.say('Tell me who are you')
  await chat.ended('A real model.')

  await page.reload()
  await vendor.getByText('Key entered here, it ends in wxyz').waitFor()
  await server.stop()
  await server.launch()
  await page.goto('/')
  const more = new Chat(page)
  await more.say('And again')
  await more.ended('Still a real model.')

  // The key is in no answer, no log and no file.
  const { sessions } = await server.ask('GET', '/api/v1/sessions')
  const logs = sessions.map(({ id }) => `/api/v1/sessions/${id}/log`)
  const answers = await Promise.all(
    ['/api/v1/model-keys', '/api/v1/audit/events', '/api/v1/me', ...logs].map((path) =>
      fetch(server.url + path).then((response) => response.text()),
    ),
  )
  assert(!(answers.join() + server.log.join()).includes('entered-in-the-page'))
  for (const name of readdirSync(server.data, { recursive: true })) {
    const path = join(server.data, name)
    if (statSync(path).isFile()) assert(!readFileSync(path, 'latin1').includes('entered-in-the-page'), name)
  }

  await page.goto('/settings#models')
  await vendor.getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click()
  await vendor.getByText('No key').waitFor()
  await until('the demo answers again', async () => (await server.ask('GET', '/api/v1/me')).demo)
})

test('the environment wins over the page, and with sign-in there is no page', async (t) => {
  const model = await Model.start(t)
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server, { tolerate: [whileAway] })
  const page = await visitor.tab('/settings#models')
  const vendor = page.getByRole('region', { name: /^OpenAI/ })
  await vendor.getByText('Key from the environment (OPENAI_API_KEY), it ends in 6789').waitFor()
  assert.equal(await vendor.getByRole('textbox').count(), 0)
  await vendor.getByRole('button', { name: 'Test' }).click()
  await vendor.getByText(/^\d+ models: /).waitFor()
  await assert.rejects(server.ask('PUT', '/api/v1/model-keys/openai', { body: { key } }), /409.*wins/)

  const shared = await Server.start(t, { env: jwt })
  const ann = token('ann', 'org_admin')
  await assert.rejects(shared.ask('GET', '/api/v1/model-keys', { token: ann }), /403.*local mode only/)
  await assert.rejects(
    shared.ask('PUT', '/api/v1/model-keys/openai', { token: ann, body: { key } }),
    /403.*local mode only/,
  )
})
